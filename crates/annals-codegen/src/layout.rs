//! Line breaks: the generator writes heads and calls on one line each. This module breaks long ones
//! as rustfmt does by default, so that formatting a crate doesn't change a file of generated code.

use super::indent;

/// The longest line.
const MOST_COLUMNS: usize = 100;
/// The longest call, and the longest list in brackets, on one line.
const MOST_OF_A_CALL: usize = 60;

/// Breaks the lines of a file that are too long.
pub(super) fn broken(code: &str) -> String {
    let mut whole = String::with_capacity(code.len() + code.len() / 8);
    for line in code.lines() {
        let statement = line.trim_start();
        let margin = line.len() - statement.len();
        match lines(statement, MOST_COLUMNS.saturating_sub(margin)) {
            Some(lines) => {
                for line in lines.lines() {
                    whole.push_str(&" ".repeat(margin));
                    whole.push_str(line);
                    whole.push('\n');
                }
            }
            None => {
                whole.push_str(line);
                whole.push('\n');
            }
        }
    }
    whole
}

/// Breaks one line, given without its margin; `None` if it stays as it is.
fn lines(statement: &str, room: usize) -> Option<String> {
    let is_head = statement.ends_with('{') && is_function(statement);
    if is_head && statement.chars().count() > room {
        return broken_call(statement);
    }
    let (called, tail) = statement.strip_suffix("?;").map_or((statement, ""), |call| (call, "?;"));
    let is_call = called.starts_with("self.") && called.ends_with(')');
    if is_call && statement.chars().count() > MOST_OF_A_CALL.min(room) {
        let broken = broken_chain(called, room).or_else(|| broken_call(called))?;
        return Some(format!("{broken}{tail}"));
    }
    let is_item = ["pub const ", "pub type ", "static ", "let "];
    if !is_item.iter().any(|item| statement.starts_with(item)) {
        return None;
    }
    let (name, list) = statement.split_once(" = ")?;
    if !list.starts_with('[') && statement.chars().count() > room {
        return Some(format!("{name} =\n    {list}"));
    }
    let list = list.strip_suffix(';')?;
    if !list.starts_with('[') || inside(list)?.len() <= MOST_OF_A_CALL {
        return None;
    }
    Some(format!("{name} = {};", broken_list(list)?))
}

fn is_function(statement: &str) -> bool {
    ["fn ", "pub fn ", "pub(super) fn ", "pub(in super::super) fn "]
        .iter()
        .any(|head| statement.starts_with(head))
}

/// Puts the method on its own line, if it is short enough for that.
fn broken_chain(statement: &str, room: usize) -> Option<String> {
    let (from, to) = parentheses(statement)?;
    let dot = statement.get(..from)?.rfind('.')?;
    let (method, arguments) = (statement.get(dot..)?, statement.get(from + 1..to)?);
    let counted = match split(arguments).as_slice() {
        [list] => inside(list).unwrap_or(list).len(),
        _ => arguments.len(),
    };
    let is_short = counted <= MOST_OF_A_CALL && method.chars().count() + 4 < room;
    is_short.then(|| format!("{}\n    {method}", statement.get(..dot).unwrap_or_default()))
}

/// Puts each argument, or parameter, on its own line; of a single list each element.
fn broken_call(statement: &str) -> Option<String> {
    let (from, to) = parentheses(statement)?;
    let (head, arguments, tail) =
        (statement.get(..from)?, statement.get(from + 1..to)?, statement.get(to + 1..)?);
    let arguments = split(arguments);
    if let [list] = arguments.as_slice()
        && list.starts_with("&[")
    {
        return Some(format!("{head}({}){tail}", broken_list(list)?));
    }
    let mut lines = String::new();
    for argument in arguments {
        let is_long = argument.starts_with("&[") && inside(argument)?.len() > MOST_OF_A_CALL;
        let argument = if is_long { broken_list(argument)? } else { argument.to_owned() };
        lines += &indent(&format!("{argument},"));
    }
    Some(format!("{head}(\n{lines}){tail}"))
}

fn broken_list(list: &str) -> Option<String> {
    let elements: String = split(inside(list)?).iter().map(|e| format!("    {e},\n")).collect();
    Some(format!("{}[\n{elements}]", list.split_once('[')?.0))
}

/// Returns the contents of the brackets of `[..]` and `&[..]`.
fn inside(list: &str) -> Option<&str> {
    list.trim_start_matches('&').strip_prefix('[')?.strip_suffix(']')
}

/// Finds the first parenthesis outside other pairs of any kind, and its closing one.
fn parentheses(statement: &str) -> Option<(usize, usize)> {
    let mut depth = 0_u32;
    let mut from = None;
    for (place, c) in statement.char_indices() {
        match c {
            '(' if depth == 0 && from.is_none() && !statement[..place].ends_with("pub") => {
                from = Some(place);
                depth = 1;
            }
            '(' | '[' => depth += 1,
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                if let Some(from) = from
                    && depth == 0
                {
                    return Some((from, place));
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits at the commas outside all brackets.
fn split(list: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let mut parts = Vec::new();
    let mut from = 0;
    let mut before = ' ';
    for (place, c) in list.char_indices() {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if before != '-' && before != '=' => depth -= 1,
            ',' if depth == 0 => {
                parts.extend(list.get(from..place));
                from = place + 1;
            }
            _ => {}
        }
        before = c;
    }
    parts.extend(list.get(from..));
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::broken;

    #[test]
    fn short_lines_stay() {
        let code = "    pub fn a(&self) -> u8 {\n        self.0.get(1)\n    }\n";
        assert_eq!(broken(code), code, "nothing to break");
    }

    #[test]
    fn heads_are_broken_at_parameters() {
        let first = "a".repeat(40);
        let head = format!("    pub(super) fn f<'k>(&self, {first}: Map<u8, u8>, b: {first}) {{\n");
        let lines = broken(&head);
        let expected = format!(
            "    pub(super) fn f<'k>(\n        &self,\n        {first}: Map<u8, u8>,\n        \
             b: {first},\n    ) {{\n"
        );
        assert_eq!(lines, expected, "one parameter a line");
    }

    #[test]
    fn calls_are_broken_at_arguments_and_lists() {
        let name = "n".repeat(30);
        let lists = format!("self.0.insert(&[{name}.into(), {name}.into()])\n");
        let expected = format!("self.0.insert(&[\n    {name}.into(),\n    {name}.into(),\n])\n");
        assert_eq!(broken(&lists), expected, "the only argument");
        let list = format!("let values = [{name}.into(), {name}.into()];\n");
        let expected = format!("let values = [\n    {name}.into(),\n    {name}.into(),\n];\n");
        assert_eq!(broken(&list), expected, "a list by itself");
    }
}
