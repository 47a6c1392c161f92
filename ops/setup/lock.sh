#!/bin/sh
# Writes the lock files anew: versions and hashes only, so that each machine's own package index applies.
# UPGRADE=1 takes newer versions; without it, what is locked stays.
set -eu
cd "$(dirname "$0")/../.."

. ops/setup/certificates.sh

uv=.venv/bin/uv
compile() {
    output=$1
    shift
    "$uv" pip compile "$@" --output-file "$output" --quiet --universal --python-version 3.11 \
        --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
        --no-emit-package placet ${UPGRADE:+--upgrade}
}

compile requirements/bootstrap.lock requirements/bootstrap.in
compile requirements/server.lock pyproject.toml
compile requirements/dev.lock pyproject.toml --extra broker --extra export --group dev --constraint requirements/server.lock
compile requirements/demo.lock pyproject.toml --extra broker --extra export --group dev --group demo --constraint requirements/dev.lock
compile requirements/tools.lock requirements/tools.in
