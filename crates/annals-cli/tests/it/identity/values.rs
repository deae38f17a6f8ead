//! Random values, as text.

use super::generator::{Field, Generator};

impl Generator {
    /// Draws a value for a field of a row; remembers where an enforced reference leads.
    pub(super) fn value_of(&mut self, table: usize, id: u64, field: &Field) -> String {
        let Some((target, _)) = field.enforced else { return self.value(field) };
        let rows = self.state.tables.iter().find(|table| table.key == target);
        let ids: Vec<u64> =
            rows.map(|table| table.rows.keys().copied().collect()).unwrap_or_default();
        let pick = self.random(ids.len() as u64 + 1);
        let to = ids.get(usize::try_from(pick).unwrap()).copied();
        let Some(row) = self.state.tables[table].rows.get_mut(&id) else {
            return "null".to_owned();
        };
        match to {
            Some(to) => drop(row.insert(field.key, to)),
            None => drop(row.remove(&field.key)),
        }
        to.map_or_else(|| "null".to_owned(), |to| to.to_string())
    }

    pub(super) fn value(&mut self, field: &Field) -> String {
        if field.enforced.is_some() || (field.nullable && self.random(4) == 0) {
            return "null".to_owned();
        }
        if field.unique {
            self.counter += 1;
            return self.counter.to_string();
        }
        let pick = usize::try_from(self.random(4)).unwrap();
        match field.ty.as_str() {
            "bool" => ["true", "false", "1", "0"][pick].to_owned(),
            "int8" => ["-128", "127", "0", "5"][pick].to_owned(),
            "int16" => ["-32768", "32767", "0", "-7"][pick].to_owned(),
            "int32" => ["-2147483648", "2147483647", "0", "123456"][pick].to_owned(),
            "int64" => ["-9223372036854775808", "9223372036854775807", "0", "-1"][pick].to_owned(),
            "uint8" => ["255", "0", "1", "128"][pick].to_owned(),
            "uint16" => ["65535", "0", "1", "256"][pick].to_owned(),
            "uint32" => ["4294967295", "0", "1", "65536"][pick].to_owned(),
            "uint64" => ["18446744073709551615", "0", "1", "4294967296"][pick].to_owned(),
            "float32" | "float64" => self.float(),
            "string" => self.string(),
            "bytes" => ["0x", "0x00", "0xff00Fe", "0x22225c0a"][pick].to_owned(),
            "timestamp" => self.timestamp(),
            "date" => ["1970-01-01", "0000-02-29", "+12345-12-31", "-00044-03-15"][pick].to_owned(),
            "uuid" => format!("{:032x}", self.random(1 << 40) << pick),
            "json" => [r#""{\"a\": [1, null]}""#, "0", r#""\"é\\n\"""#, "[]"][pick].to_owned(),
            "bytes(3)" => ["0x000000", "0xff00Fe", "0x22225c", "0x010203"][pick].to_owned(),
            "enum(red,green)" => ["red", "green", "green", "red"][pick].to_owned(),
            "decimal(2)" => {
                ["0", "-0.01", "12.5", "-1701411834604692317316873037158841057.28"][pick].to_owned()
            }
            "blob" if self.state.blobs > 0 => format!("blob:{}", 1 + self.random(self.state.blobs)),
            "blob" => "null".to_owned(),
            _ => ["-1", "0", "3", "9223372036854775806"][pick].to_owned(),
        }
    }

    fn float(&mut self) -> String {
        let special = ["nan", "inf", "-inf", "-0", "0", "-0.0", "1e-40", "3e38", "0.1"];
        match special.get(usize::try_from(self.random(18)).unwrap()) {
            Some(text) => (*text).to_owned(),
            None => format!("{:e}", self.random(1 << 50) as f64 / 1024.0 - 1e9),
        }
    }

    pub(super) fn timestamp(&mut self) -> String {
        match self.random(6) {
            0 => "@-9223372036854775808".to_owned(),
            1 => "@9223372036854775807".to_owned(),
            2 => "2021-11-02T22:10:25+01:00".to_owned(),
            3 => "0000-01-01T00:00:00Z".to_owned(),
            _ => format!("@{}", self.random(1 << 53)),
        }
    }

    pub(super) fn string(&mut self) -> String {
        const PARTS: [&str; 14] = [
            "a",
            "é",
            "字",
            " ",
            r#"\""#,
            r"\\",
            r"\n",
            r"\t",
            r"\r",
            "#",
            "//",
            r"\u{1f600}",
            r"\000",
            "a longer piece of text that fits no cell",
        ];
        let mut text = "\"".to_owned();
        for _ in 0..self.random(6) {
            text += PARTS[usize::try_from(self.random(PARTS.len() as u64)).unwrap()];
        }
        text + "\""
    }
}
