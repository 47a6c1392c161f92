#!/bin/sh
# Makes .venv with everything that the lock files name, and fetches Kafka's jars. Quick when nothing changed.
# PYTHON names the interpreter (3.11 or newer); LOCK the lock file, requirements/demo.lock by default.
set -eu
cd "$(dirname "$0")/../.."

. ops/setup/certificates.sh

lock=${LOCK:-requirements/demo.lock}
stamp=.venv/setup.stamp

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$*"
    exit 2
}

is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
        if is_recent "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    die "No Python 3.11 or newer was found: install one, or name it with PYTHON=/path/to/python."
}

make_venv() {
    if "$1" -m venv .venv; then
        return
    fi
    rm -rf .venv
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
        die "Python has no venv module: install it (Debian: apt-get install python3-venv) and start again."
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
    "$1" -m venv .venv
}

# The interpreter and the tree's own place count too: a moved tree or a removed Python needs a new environment.
fingerprint() {
    { pwd; .venv/bin/python -VV; cat "$lock" requirements/bootstrap.lock pyproject.toml sdk/pyproject.toml \
        ops/setup/environment.sh ops/setup/certificates.sh ops/kafka/jars.json; } | .venv/bin/python -c \
        'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
}

# A stamp says what was installed once; files may be gone since.
is_whole() {
    .venv/bin/python ops/setup/installed_files.py "$lock"
}

if [ -f "$stamp" ] && [ -x .venv/bin/python ] && is_recent .venv/bin/python; then
    if [ "$(cat "$stamp")" = "$(fingerprint)" ]; then
        is_whole && exit 0
        say "Creating .venv again"
        rm -rf .venv
    fi
fi
if ! [ -x .venv/bin/python ] || ! is_recent .venv/bin/python || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    rm -rf .venv
    python=$(find_python)
    say "Creating .venv with $("$python" -VV)"
    make_venv "$python"
fi

rm -f "$stamp"
say "Installing what $lock names, by version and hash"
# Whatever ends this early was an installer, which has said why.
trap '[ $? = 0 ] || about_certificates' EXIT
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
    --requirement requirements/bootstrap.lock
# Compiled once, here: where PYTHONDONTWRITEBYTECODE is set, every process would else compile all of it at its start.
.venv/bin/uv pip install --python .venv/bin/python --compile-bytecode --require-hashes --requirement "$lock"
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable . --editable sdk
.venv/bin/python -m compileall -q gateway host log ops projections schemas sdk services vitals
.venv/bin/python -m ops.kafka.jars
say "Making the cache of the classes of Kafka"
# Kafka starts without it as well.
.venv/bin/python -m ops.kafka.training || true
fingerprint >"$stamp"
