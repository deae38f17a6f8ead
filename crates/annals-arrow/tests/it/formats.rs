//! Files of other programs: each compression, container and width, as the crates of Arrow and Parquet write them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use annals::{Error, Schema};
use annals_arrow::{Batches, are_ids, field_type_of, ipc, parquet};
use arrow_array::types::Float16Type;
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, Date32Array, Decimal32Array, Decimal64Array,
    Decimal128Array, Decimal256Array, FixedSizeBinaryArray, Float16Array, Float64Array, Int8Array,
    Int64Array, LargeStringArray, NullArray, RecordBatch, RecordBatchIterator, StringArray,
    TimestampSecondArray, UInt16Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};

use super::{TABLE, copied, rows};

type Half = <Float16Type as ArrowPrimitiveType>::Native;

fn schema(fields: &str) -> Schema {
    let text = format!("create_table x\ncreate_table t\n{fields}");
    annals_schema::parse(&text).unwrap().schema
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, it)| (name, it, true)))
        .unwrap()
}

fn batches_of(batches: Vec<RecordBatch>) -> Batches {
    let columns = batches[0].schema();
    Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), columns))
}

/// Writes batches with Parquet's crate.
fn write_parquet(path: &Path, batches: &[RecordBatch], compression: ::parquet::basic::Compression) {
    let properties = ::parquet::file::properties::WriterProperties::builder();
    let properties = properties.set_compression(compression).build();
    let file = File::create(path).unwrap();
    let writer =
        ::parquet::arrow::ArrowWriter::try_new(file, batches[0].schema(), Some(properties));
    let mut writer = writer.unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
}

/// Writes batches with Arrow's crate, as a file (which Feather is too) or a stream.
fn write_arrow(
    path: &Path,
    batches: &[RecordBatch],
    codec: Option<CompressionType>,
    is_stream: bool,
) {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let (file, columns) = (File::create(path).unwrap(), batches[0].schema());
    if is_stream {
        let mut writer = StreamWriter::try_new_with_options(file, &columns, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = FileWriter::try_new_with_options(file, &columns, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
}

#[test]
fn each_compression_and_container_is_read() {
    use ::parquet::basic::Compression::{BROTLI, GZIP, LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    let schema = schema("add_field t n int64\nadd_field t s string\n");
    let texts: Vec<String> = (0..2000).map(|n| format!("text {}", n % 7)).collect();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..2000));
    let batch = batch(vec![("n", numbers), ("s", Arc::new(StringArray::from(texts)))]);
    let batches = [batch.slice(0, 1500), batch.slice(1500, 500)];
    let expected = rows(&copied(&schema, batches_of(batches.to_vec())).unwrap());
    assert_eq!(expected.len(), 2000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let parquets = [
        UNCOMPRESSED,
        SNAPPY,
        GZIP(Default::default()),
        BROTLI(Default::default()),
        ZSTD(Default::default()),
        LZ4,
        LZ4_RAW,
    ];
    for compression in parquets {
        write_parquet(&path, &batches, compression);
        let read = parquet::read(File::open(&path).unwrap()).unwrap();
        assert_eq!(rows(&copied(&schema, read).unwrap()), expected, "{compression}");
    }
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for is_stream in [false, true] {
            write_arrow(&path, &batches, codec, is_stream);
            let read = ipc::read_file(File::open(&path).unwrap()).unwrap();
            let copy = copied(&schema, read).unwrap();
            assert_eq!(rows(&copy), expected, "{codec:?}, stream: {is_stream}");
        }
    }
}

fn refused(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    let read = ipc::read_file(File::open(&path).unwrap());
    read.err().map(|error| error.to_string()).unwrap()
}

#[test]
fn other_files_are_refused_by_name() {
    assert!(refused(b"FEA1\0\0\0\0FEA1").contains("first version of Feather"));
    for bytes in [&b""[..], b"x", b"ARROW1", b"ARROW1\0\0nothing", b"PAR1nothing"] {
        assert!(!refused(bytes).is_empty());
    }
}

/// Columns of all widths, with the types that fields of them get, and a value as the field shows it.
fn widths() -> Vec<(ArrayRef, &'static str, &'static str)> {
    let half = Float16Array::from(vec![Half::from_f32(1.5)]);
    let decimal32 = Decimal32Array::from(vec![1001]).with_precision_and_scale(4, 1).unwrap();
    let decimal64 = Decimal64Array::from(vec![-1001]).with_precision_and_scale(10, 2).unwrap();
    let decimal128 = Decimal128Array::from(vec![7]).with_precision_and_scale(38, 3).unwrap();
    let wide = Decimal256Array::from(vec![arrow_buffer::i256::from_i128(i128::MAX)]);
    let decimal256 = wide.with_precision_and_scale(76, 1).unwrap();
    let key = FixedSizeBinaryArray::try_from_iter([[7_u8, 255]].into_iter()).unwrap();
    vec![
        (Arc::new(half), "float32", "1.5"),
        (Arc::new(decimal32), "decimal(1)", "100.1"),
        (Arc::new(decimal64), "decimal(2)", "-10.01"),
        (Arc::new(decimal128), "decimal(3)", "0.007"),
        (Arc::new(decimal256), "decimal(1)", "17014118346046923173168730371588410572.7"),
        (Arc::new(UInt16Array::from(vec![65535])), "uint16", "65535"),
        (Arc::new(BooleanArray::from(vec![true])), "bool", "true"),
        (Arc::new(Date32Array::from(vec![0])), "date", "1970-01-01"),
        (Arc::new(TimestampSecondArray::from(vec![1])), "timestamp", "1970-01-01T00:00:01Z"),
        (Arc::new(LargeStringArray::from(vec!["x"])), "string", "\"x\""),
        (Arc::new(key), "bytes(2)", "0x07ff"),
        (Arc::new(NullArray::new(1)), "string", "null"),
    ]
}

#[test]
fn each_width_has_a_field_that_holds_it() {
    for (array, ty, shown) in widths() {
        let column = Field::new("v", array.data_type().clone(), true);
        assert_eq!(field_type_of(&column).unwrap().to_string(), ty, "{column}");
        let schema = schema(&format!("add_field t v {ty} null\n"));
        let copy = copied(&schema, batches_of(vec![batch(vec![("v", array)])])).unwrap();
        let now = copy.read();
        let table = now.table(TABLE).unwrap();
        let row = table.get(annals::RowId(0)).unwrap();
        let mut text = String::new();
        annals_schema::write_value(&mut text, row.value(annals::FieldNumber(0))).unwrap();
        assert_eq!(text, shown, "{column}");
    }
    let list = Field::new_list("v", Field::new("item", DataType::Int8, true), true);
    let error = field_type_of(&list).unwrap_err().to_string();
    assert!(error.contains("column \"v\"") && error.contains("leave the column out"), "{error}");
}

fn message(schema: &Schema, batches: Vec<RecordBatch>) -> String {
    copied(schema, batches_of(batches))
        .map(drop)
        .map_err(|error: Error| error.to_string())
        .unwrap_err()
}

#[test]
fn a_misfit_is_shown_as_users_write_it_with_its_row_in_the_file() {
    let column = |array: ArrayRef| batch(vec![("v", array)]);
    let small = column(Arc::new(Int64Array::from(vec![1; 1000])));
    let large = column(Arc::new(Int64Array::from(vec![1, 300])));
    let int8 = schema("add_field t v int8\n");
    assert_eq!(
        message(&int8, vec![small.clone(), small, large]),
        "row 2001 (counted from 0): table `t`, field `v`: 300 isn't a value of type int8"
    );
    let text = column(Arc::new(StringArray::from(vec!["a \"b\""])));
    assert!(message(&int8, vec![text]).contains(r#": "a \"b\"" isn't a value of type int8"#));
    let long = column(Arc::new(StringArray::from(vec!["x".repeat(100_000)])));
    assert!(message(&int8, vec![long]).len() < 1000);
    let wide = Decimal256Array::from(vec![arrow_buffer::i256::MAX]);
    let wide = column(Arc::new(wide.with_precision_and_scale(76, 0).unwrap()));
    let decimal = schema("add_field t v decimal(0)\n");
    assert!(message(&decimal, vec![wide]).contains("more digits than 128 bits hold"));
}

#[test]
fn whole_numbers_are_not_rounded_to_floats() {
    let column = |numbers: &[i64]| {
        batches_of(vec![batch(vec![("v", Arc::new(Int64Array::from(numbers.to_vec())))])])
    };
    for (ty, exact, rounded) in [
        ("float64", [1 << 53, 1 << 62], [(1 << 53) + 1, i64::MAX]),
        ("float32", [1 << 24, 1 << 62], [(1 << 24) + 1, (1 << 53) + 1]),
    ] {
        let schema = schema(&format!("add_field t v {ty}\n"));
        assert!(copied(&schema, column(&exact)).is_ok());
        for number in rounded {
            let error = copied(&schema, column(&[0, number])).map(drop).unwrap_err().to_string();
            let said = format!("row 1 (counted from 0): table `t`, field `v`: {number} isn't");
            assert!(error.starts_with(&said), "{error}");
        }
    }
}

#[test]
fn a_float_is_rounded_to_its_field_but_not_to_infinity() {
    let column = |float: f64| vec![batch(vec![("v", Arc::new(Float64Array::from(vec![float])))])];
    let single = schema("add_field t v float32\n");
    for float in [0.1, 1.0 / 3.0, -0.0, f64::INFINITY, f64::NAN] {
        let copy = copied(&single, batches_of(column(float))).unwrap();
        let now = copy.read();
        let row = now.table(TABLE).unwrap().get(annals::RowId(0)).unwrap();
        let annals::ValueRef::Float32(found) = row.value(annals::FieldNumber(0)) else { panic!() };
        let of_text: f32 = float.to_string().parse().unwrap();
        assert_eq!(found.to_bits(), of_text.to_bits());
    }
    assert!(message(&single, column(1e39)).contains("1e39 isn't a value of type float32"));
}

#[test]
fn a_column_that_is_there_twice_is_refused() {
    let one: ArrayRef = Arc::new(Int8Array::from(vec![1]));
    let columns = ["v", "v"].map(|name| Field::new(name, DataType::Int8, true));
    let columns = Arc::new(arrow_schema::Schema::new(columns.to_vec()));
    let batch = RecordBatch::try_new(columns, vec![one.clone(), one]).unwrap();
    let said = message(&schema("add_field t v int8\n"), vec![batch]);
    assert!(said.contains("column \"v\" is there twice"), "{said}");
}

#[test]
fn ids_ascend_over_all_batches() {
    let column = |ids: &[i64]| batch(vec![("id", Arc::new(Int64Array::from(ids.to_vec())))]);
    let cases: [(&[&[i64]], bool); 5] = [
        (&[&[0, 5], &[6]], true),
        (&[&[0, 5], &[5]], false),
        (&[&[7], &[6]], false),
        (&[&[-1]], false),
        (&[&[i64::MAX]], false),
    ];
    for (batches, expected) in cases {
        let batches = batches_of(batches.iter().map(|ids| column(ids)).collect());
        assert_eq!(are_ids(batches, 0).unwrap(), expected);
    }
}
