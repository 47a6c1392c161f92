#!/bin/sh
# The tests drive pages in a real browser: Chromium must be on the machine. Installs Debian's where it may.
set -eu

has_browser() {
    command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 ||
        command -v google-chrome >/dev/null 2>&1
}

if has_browser; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "The tests need Chromium: install it (Debian: apt-get install chromium)." >&2
    exit 2
fi
echo "Installing Debian's Chromium for the tests" >&2
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
has_browser
