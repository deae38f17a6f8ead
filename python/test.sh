#!/usr/bin/env bash
# Builds the wheel, installs it into a new environment, and tests it there.
#
#   python/test.sh            fails if something is missing
#   python/test.sh --or-skip  says what is missing, and succeeds
#
# ANNALS_PROFILE=dev builds it quickly, without optimisation. ANNALS_PROGRAM=PATH is a program `annals` that is built already.
set -euo pipefail
cd "$(dirname "$0")"

python=${PYTHON:-python3}
target=$(cd .. && pwd)/target
export CARGO_TARGET_DIR=$target/python

missing() {
    echo "the Python package isn't tested: $1" >&2
    [ "${option-}" = --or-skip ] && exit 0
    exit 1
}

option=${1-}
"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    missing "it needs Python 3.11 or later, with venv and pip"
rm -rf "$target/python-test" "$target/wheels"
"$python" -m venv "$target/python-test"
bin=$target/python-test/bin
"$bin/pip" install --quiet --retries 1 'maturin>=1.16,<2' 'mypy>=1.18' pytest pyarrow duckdb polars ||
    missing "pip can't install maturin, mypy, pytest, pyarrow, duckdb and polars"
"$bin/pip" install --quiet --retries 1 nbclient ipykernel matplotlib ||
    echo "the notebooks aren't tested: pip can't install nbclient, ipykernel and matplotlib" >&2
"$bin/pip" install --quiet --retries 1 fastapi uvicorn flask pandas ||
    echo "web services and pandas aren't tested: pip can't install fastapi, uvicorn, flask and pandas" >&2
"$bin/maturin" build --profile "${ANNALS_PROFILE:-release}" --interpreter "$bin/python" --out "$target/wheels"
# A free-threaded interpreter would make a wheel for itself alone.
ls "$target"/wheels/annals-*-abi3-*.whl >/dev/null
"$bin/pip" install --quiet --no-index "$target"/wheels/annals-*.whl
cp -r tests "$target/python-test/"
if [ -z "${ANNALS_PROGRAM-}" ]; then
    (cd .. && CARGO_TARGET_DIR=$target cargo build --quiet -p annals-cli)
    ANNALS_PROGRAM=$target/debug/annals
fi
export ANNALS_PROGRAM
"$ANNALS_PROGRAM" compile --python tests/library.schema -o "$target/python-test/tests/library.py"
ANNALS_ROOT=$(cd .. && pwd)
export ANNALS_ROOT
export ANNALS_GUIDE=$PWD/../docs/guide/src
cd "$target/python-test"
bin/pytest --quiet tests
bin/mypy --strict tests/typed.py tests/library.py
bin/stubtest annals --ignore-unused-allowlist --allowlist tests/stubtest.txt
