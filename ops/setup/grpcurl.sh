#!/bin/sh
# The tests run a session of grpcurl (examples/hitl/grpc.sh): built by Go, by version, beside Python's tools. Go checks
# the module against its public checksum database.
set -eu
cd "$(dirname "$0")/../.."

version=v1.9.3
home=$PWD/.venv/bin
stamp=.venv/grpcurl.stamp

# What `go install` builds does not know its own version.
if [ -x "$home/grpcurl" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$version" ]; then
    exit 0
fi
go=$(command -v go || ls /usr/local/go/bin/go 2>/dev/null || true)
if [ -z "$go" ]; then
    echo "The tests need grpcurl $version, which Go builds: install Go (https://go.dev/doc/install)." >&2
    exit 2
fi
echo "Building grpcurl $version for the tests" >&2
GOBIN=$home "$go" install "github.com/fullstorydev/grpcurl/cmd/grpcurl@$version"
echo "$version" >"$stamp"
