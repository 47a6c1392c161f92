#!/bin/sh
# The tests start a PostgreSQL of their own: its binaries must be on the machine. Installs Debian's where it may.
set -eu

has_server() {
    command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

if has_server; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "The tests need PostgreSQL's server (initdb): install it (Debian: apt-get install postgresql)." >&2
    exit 2
fi
echo "Installing Debian's PostgreSQL for the tests" >&2
mkdir -p /etc/postgresql-common
[ -f /etc/postgresql-common/createcluster.conf ] ||
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Options::=--force-confold postgresql >/dev/null
has_server
