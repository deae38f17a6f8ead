//! Why a request to an object store failed, in a sentence: stores answer with pages.

use annals::ErrorKind;

use crate::redact::redact;

/// Returns the kind of a failure, and what it says, with what to do where that is known.
pub(super) fn explain(error: &object_store::Error) -> (ErrorKind, String) {
    let kind = match error {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::Unauthenticated { .. } => ErrorKind::Unauthenticated,
        object_store::Error::PermissionDenied { .. } => ErrorKind::Forbidden,
        _ => ErrorKind::Unreachable,
    };
    explain_text(kind, &redact(&error.to_string()))
}

fn explain_text(kind: ErrorKind, text: &str) -> (ErrorKind, String) {
    let keys = "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
    // Without keys the client asks the cloud's own service for some.
    if text.contains("169.254.169.254") {
        return (ErrorKind::Unauthenticated, format!("no keys: {keys}"));
    }
    if text.contains("builder error") {
        let what = "the address can't be used: without TLS it needs AWS_ALLOW_HTTP=true";
        return (kind, format!("{what} ({text})"));
    }
    let Some(code) = between(text, "<Code>", "</Code>") else { return (kind, text.to_owned()) };
    let message = between(text, "<Message>", "</Message>").unwrap_or_default();
    let said = format!("the store answers {code}: {message}");
    match code {
        "NoSuchBucket" => (ErrorKind::NotFound, format!("{said} Create it first.")),
        "SignatureDoesNotMatch" | "InvalidAccessKeyId" => {
            (ErrorKind::Unauthenticated, format!("{said} ({keys})"))
        }
        "AccessDenied" => (ErrorKind::Forbidden, said),
        _ => (kind, said),
    }
}

fn between<'t>(text: &'t str, begin: &str, end: &str) -> Option<&'t str> {
    Some(text.split_once(begin)?.1.split_once(end)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_store_becomes_a_sentence() {
        let page = |code: &str| {
            format!(
                "Generic S3 error: Error performing GET http://a/b - Server returned non-2xx status code: 403 Forbidden: \
                 <?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>It is so.</Message><HostId>x</HostId></Error>"
            )
        };
        let explain = |text: &str| explain_text(ErrorKind::Unreachable, text);
        let (kind, said) = explain(&page("SignatureDoesNotMatch"));
        assert_eq!(kind, ErrorKind::Unauthenticated);
        assert_eq!(
            said,
            "the store answers SignatureDoesNotMatch: It is so. \
             (check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
        );
        assert_eq!(explain(&page("NoSuchBucket")).0, ErrorKind::NotFound);
        assert_eq!(explain(&page("SlowDown")).0, ErrorKind::Unreachable);
        assert_eq!(explain("a cut connection").1, "a cut connection");
        assert!(explain("HTTP error: builder error").1.contains("AWS_ALLOW_HTTP"));
    }
}
