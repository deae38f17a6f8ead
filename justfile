# Everything that must hold before a change lands.
ci:
    .ci/run

# Other platforms: `just ports check`, `just ports windows`, ..; all without a word.
ports *part:
    .ci/ports {{part}}

# The tests, with the sweeps at their default size.
test:
    cargo test --workspace

# The tests, with the sweeps as large as they get.
test-full:
    ANNALS_TEST_EFFORT=full cargo test --release --workspace

# Rewrites the expectations of golden tests.
update:
    UPDATE=1 cargo test --workspace

# Annals beside its peers: all workloads, or `just bench open`, `just bench commits`, ..
bench *part:
    cargo run --release -p annals-bench -- --table {{part}}

# Instructions of single operations beside the accepted counts; with valgrind.
instructions *part:
    cargo run --release -p annals-bench -- --table instructions {{part}}

# Undefined behaviour and data races in unsafe code: all modules that have any, or `just miri store::arena`, ..
miri *modules:
    .ci/miri {{modules}}

# Looks for bytes that break a target, for so many seconds: schema, codec, journal, image, shell, joedb, request, answer (fuzz/README.md).
fuzz target seconds="300":
    mkdir -p fuzz/target/corpus/{{target}}
    cargo +nightly fuzz run {{target}} fuzz/target/corpus/{{target}} fuzz/corpus/{{target}} -- \
        -max_total_time={{seconds}} -max_len=6000 -timeout=20

# The guide as a book, target/guide/book/index.html; with mdBook.
guide:
    .ci/guide

# Licences and advisories of the dependencies.
deny:
    cargo deny check
