#!/bin/sh
# The tests hold the alerts against Prometheus' own reader: Debian's promtool, unpacked beside Python's tools.
set -eu
cd "$(dirname "$0")/../.."

if command -v promtool >/dev/null 2>&1 || [ -x .venv/bin/promtool ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "The tests need promtool: install Prometheus (Debian: apt-get install prometheus)." >&2
    exit 2
fi
echo "Fetching Debian's promtool for the tests" >&2
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# A name that apt's own user may write to where this runs as root.
chmod 755 "$home"
[ "$(id -u)" != 0 ] || apt-get update -qq
(cd "$home" && apt-get download -qq prometheus 2>/dev/null)
dpkg-deb --extract "$home"/prometheus_*.deb "$home/files"
cp "$home/files/usr/bin/promtool" .venv/bin/promtool
