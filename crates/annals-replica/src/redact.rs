//! URLs as messages and reports show them: without passwords.

/// Returns a text without the users and the passwords of the URLs in it: messages and reports show URLs so. Of an `ssh` URL
/// the user stays.
///
/// ```
/// assert_eq!(annals_replica::redact("s3://key:secret@backups/a: no such bucket"), "s3://backups/a: no such bucket");
/// ```
#[must_use]
pub fn redact(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
        let (url, following) = after.split_at(after.find(ends).unwrap_or(after.len()));
        shown.push_str(before);
        shown.push_str(&without_login(url, before.ends_with("ssh://")));
        rest = following;
    }
    shown + rest
}

/// Returns what follows the scheme of a URL, without users and passwords.
fn without_login(url: &str, keeps_user: bool) -> String {
    let (mut hosts, mut path) = url.split_at(url.find(['/', '?', '#']).unwrap_or(url.len()));
    let port = hosts.rsplit_once(':').map_or("", |(_, port)| port);
    // A password with a slash in it: what seems to be a port isn't one.
    if !hosts.contains('@') && !port.ends_with(']') && port.contains(|c: char| !c.is_ascii_digit())
    {
        (hosts, path) = url.rfind('@').map_or((hosts, path), |at| ("", &url[at + 1..]));
    }
    let host = |host: &str| match host.rsplit_once('@') {
        None => host.to_owned(),
        Some((login, host)) if keeps_user => {
            format!("{}@{host}", login.split(':').next().unwrap_or_default())
        }
        Some((_, host)) => host.to_owned(),
    };
    hosts.split(',').map(host).collect::<Vec<_>>().join(",") + path
}
