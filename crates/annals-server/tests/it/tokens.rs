//! Tokens in a file beside the database.

use std::str::FromStr as _;

use annals::{Options, Timestamp};
use annals_server::{NewToken, Role, Tokens};

#[test]
fn tokens_are_kept_as_hashes_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.annals");
    Options::new().open(&path).unwrap().close().unwrap();
    let tokens = Tokens::of(&path).unwrap();
    assert_eq!(tokens.list().unwrap(), []);
    let until = Timestamp::from_str("2030-01-01T00:00:00Z").unwrap();
    let (reader, admin) =
        (NewToken::random(Role::Read, Some(until)), NewToken::random(Role::Admin, None));
    tokens.add(&reader.stored).unwrap();
    tokens.add(&admin.stored).unwrap();
    assert_eq!(tokens.list().unwrap(), [reader.stored.clone(), admin.stored.clone()]);
    let file = std::fs::read_to_string(tokens.path()).unwrap();
    assert!(!file.contains(&reader.token) && !file.contains(&admin.token));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(tokens.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    let role = |token: &NewToken, text: &str, time| token.stored.role_of(text, Timestamp(time));
    assert_eq!(role(&reader, &reader.token, until.0 - 1), Some(Role::Read));
    assert_eq!(role(&reader, &reader.token, until.0), None, "it has ended");
    assert_eq!(role(&admin, &admin.token, i64::MAX), Some(Role::Admin));
    assert_eq!(role(&admin, &reader.token, 0), None);

    assert!(tokens.revoke(&reader.stored.id).unwrap());
    assert!(!tokens.revoke(&reader.stored.id).unwrap());
    assert_eq!(tokens.list().unwrap(), [admin.stored]);
}
