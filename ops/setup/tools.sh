#!/bin/sh
# Installs what the tests run on the published documents: generators, checkers and clients of others, by version and hash,
# in .venv/tools beside the product's own environment, whose packages they would not fit. Quick when nothing changed.
set -eu
cd "$(dirname "$0")/../.."

. ops/setup/certificates.sh

home=.venv/tools
stamp=$home/setup.stamp

fingerprint() {
    { pwd; cat requirements/tools.lock tests/clients/package.json tests/clients/package-lock.json ops/setup/tools.sh; } | .venv/bin/python -c \
        'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
}

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint)" ]; then
    exit 0
fi
echo "Installing the tools that check the published documents" >&2
rm -rf "$home"
.venv/bin/uv venv --quiet --python .venv/bin/python "$home"
.venv/bin/uv pip install --quiet --python "$home/bin/python" --compile-bytecode --require-hashes --requirement requirements/tools.lock
mkdir "$home/node"
cp tests/clients/package.json tests/clients/package-lock.json "$home/node"
# npm is a script of the Node.js beside it.
PATH="$PWD/$home/bin:$PATH" npm ci --prefix "$home/node" --ignore-scripts --no-audit --no-fund --silent
# Go checks the module and all that it needs against the public checksum database; nothing of the build is kept.
build=$PWD/$home/go
GOBIN="$PWD/$home/bin" GOPATH="$build" GOCACHE="$build/cache" GOFLAGS=-modcacherw GOTOOLCHAIN=local \
    "$home/bin/go" install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3
rm -rf "$build"
fingerprint >"$stamp"
