#!/usr/bin/env bash
# Builds the wheel, installs it into a new environment, and tests it there.
set -euo pipefail
cd "$(dirname "$0")"

python=${PYTHON:-python3}
target=$(cd .. && pwd)/target
export CARGO_TARGET_DIR=$target/python

rm -rf "$target/python-test" "$target/wheels"
"$python" -m venv "$target/python-test"
bin=$target/python-test/bin
"$bin/pip" install --quiet 'maturin>=1.16,<2' 'mypy>=1.18' pytest pyarrow duckdb polars
"$bin/maturin" build --release --interpreter "$bin/python" --out "$target/wheels"
# A free-threaded interpreter would make a wheel for itself alone.
ls "$target"/wheels/annals-*-abi3-*.whl >/dev/null
"$bin/pip" install --quiet --no-index "$target"/wheels/annals-*.whl
cp -r tests "$target/python-test/"
(cd .. && CARGO_TARGET_DIR=$target cargo run --quiet -p annals-cli -- compile --python \
    python/tests/library.schema -o "$target/python-test/tests/library.py")
export ANNALS_GUIDE=$PWD/../docs/guide/src
cd "$target/python-test"
bin/pytest --quiet tests
bin/mypy --strict tests/typed.py tests/library.py
bin/stubtest annals --ignore-unused-allowlist --allowlist tests/stubtest.txt
