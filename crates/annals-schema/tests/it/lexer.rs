//! Lines into tokens.

use annals_schema::tokenize;

/// Writes tokens as `column:text`, with quotes around those that had them.
fn show(line: &str) -> String {
    match tokenize(line) {
        Ok(tokens) => tokens
            .iter()
            .map(|token| {
                let text =
                    if token.quoted { format!("{:?}", token.text) } else { token.text.to_string() };
                format!("{}+{}:{text}", token.column, token.length)
            })
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => format!("{}+{}: {}", error.column, error.length, error.message),
    }
}

#[test]
fn words_and_strings_have_columns_in_characters() {
    assert_eq!(show("add_field  é x"), "1+9:add_field 12+1:é 14+1:x");
    assert_eq!(show("\tcomment \"é\" y\r"), "2+7:comment 10+3:\"é\" 14+1:y");
    assert_eq!(show(""), "");
    assert_eq!(show("x =\"a b\" = 5"), "1+1:x 3+1:= 4+5:\"a b\" 10+1:= 12+1:5");
}

#[test]
fn comments_begin_only_at_a_token() {
    assert_eq!(show("# all of it"), "");
    assert_eq!(show("a // rest"), "1+1:a");
    assert_eq!(show("a # \"rest"), "1+1:a");
    assert_eq!(show("http://x a#b"), "1+8:http://x 10+3:a#b");
    assert_eq!(show("\"# // no\""), "1+9:\"# // no\"");
}

#[test]
fn escapes_are_resolved() {
    let tokens = tokenize(r#""\"\\\n\t\r\303\251\000\u{e9}\u{10ffff}\x41""#).unwrap();
    assert_eq!(tokens[0].text, "\"\\\n\t\r\u{e9}\0\u{e9}\u{10ffff}A");
    // A sign stands for itself, as in joedb.
    assert_eq!(tokenize(r#""\?\'\#""#).unwrap()[0].text, "?'#");
}

#[test]
fn mistakes_have_a_place() {
    assert_eq!(show("a \"bc"), "3+3: this string has no end");
    assert_eq!(show("\"a\\\""), "1+4: this string has no end");
    assert_eq!(show("\"a\"b"), "4+1: text right behind a string");
    assert_eq!(show("a\"b\""), "2+1: a quote in the middle of a word");
    assert_eq!(show(r#""\q""#), "2+2: there is no such escape");
    assert_eq!(show(r#""\18""#), "2+2: there is no such escape");
    assert_eq!(show(r#""\400""#), "2+2: there is no such escape");
    assert_eq!(show(r#""\u{d800}""#), "2+8: there is no such escape");
    assert_eq!(show(r#""\u{1234567}""#), "2+10: there is no such escape");
    assert_eq!(show(r#""\u{}""#), "2+3: there is no such escape");
    assert_eq!(show(r#""\377""#), "1+6: the escapes of this string don't make UTF-8");
}
