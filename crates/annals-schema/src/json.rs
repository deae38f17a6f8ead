//! The check of JSON texts (RFC 8259).

/// The deepest nesting of arrays and objects.
const DEEPEST: usize = 128;

/// Returns where a text stops being JSON, in bytes; `None` if all of it is one value.
pub(crate) fn first_mistake(text: &str) -> Option<usize> {
    let mut reader = Reader { text: text.as_bytes(), place: 0 };
    let is_value = reader.value(DEEPEST).is_some();
    reader.blanks();
    (!is_value || reader.place < text.len()).then_some(reader.place)
}

struct Reader<'t> {
    text: &'t [u8],
    place: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.place).copied()
    }

    /// Takes a byte that must be one of some.
    fn take(&mut self, allowed: impl FnOnce(u8) -> bool) -> Option<u8> {
        let byte = self.peek().filter(|byte| allowed(*byte))?;
        self.place += 1;
        Some(byte)
    }

    fn is(&mut self, byte: u8) -> bool {
        self.take(|found| found == byte).is_some()
    }

    fn blanks(&mut self) {
        while self.take(|byte| b" \t\n\r".contains(&byte)).is_some() {}
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        self.blanks();
        match self.peek()? {
            b'"' => self.string(),
            b'[' => self.list(b']', depth, |reader, depth| reader.value(depth)),
            b'{' => self.list(b'}', depth, |reader, depth| {
                reader.blanks();
                reader.string()?;
                reader.blanks();
                reader.take(|byte| byte == b':')?;
                reader.value(depth)
            }),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    /// Takes the items of an array or an object, with commas between them.
    fn list(
        &mut self,
        end: u8,
        depth: usize,
        item: impl Fn(&mut Self, usize) -> Option<()>,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        self.place += 1;
        self.blanks();
        if self.is(end) {
            return Some(());
        }
        loop {
            item(self, depth)?;
            self.blanks();
            if self.is(end) {
                return Some(());
            }
            self.take(|byte| byte == b',')?;
        }
    }

    fn string(&mut self) -> Option<()> {
        self.take(|byte| byte == b'"')?;
        loop {
            match self.take(|byte| byte >= b' ')? {
                b'"' => return Some(()),
                b'\\' if self.is(b'u') => {
                    (0..4)
                        .try_for_each(|_| self.take(|byte| byte.is_ascii_hexdigit()).map(drop))?;
                }
                b'\\' => drop(self.take(|byte| b"\"\\/bfnrt".contains(&byte))?),
                _ => {}
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        word.iter().try_for_each(|letter| self.take(|byte| byte == *letter).map(drop))
    }

    fn number(&mut self) -> Option<()> {
        self.is(b'-');
        if !self.is(b'0') {
            self.digits()?;
        }
        if self.is(b'.') {
            self.digits()?;
        }
        if self.take(|byte| matches!(byte, b'e' | b'E')).is_some() {
            self.take(|byte| matches!(byte, b'+' | b'-'));
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        self.take(|byte| byte.is_ascii_digit())?;
        while self.take(|byte| byte.is_ascii_digit()).is_some() {}
        Some(())
    }
}
