//! A long answer, kept as it comes, and gone on with
//!
//! # Invariants
//! - A range is joined only to what it continues: of content with a digest, or of the
//!   version whose strong name the server gave.
//! - No byte beyond what was said, or beyond the most that may be, is kept.
//!
//! # Not here
//! Whether the bytes are the right ones (whoever asked for them).

use super::super::PackageError;
use super::Progress;
use super::partial::Partial;
use super::web::Web;
use crate::net::Streamed;

/// What is to come.
pub(super) struct Wanted<'a> {
    pub(super) url: &'a str,
    pub(super) headers: Vec<(String, String)>,
    /// Its length, if it is content with a digest.
    pub(super) size: Option<u64>,
    /// The length that it may have.
    pub(super) most: u64,
}

/// Whom to tell how far it is.
pub(super) struct Meter<'a> {
    /// What came before, of other parts.
    pub(super) before: u64,
    /// All parts.
    pub(super) of: Option<u64>,
    pub(super) tell: &'a mut dyn FnMut(Progress),
}

/// Fetches what is not there yet, and reads all.
pub(super) async fn download(
    web: &Web<'_>,
    wanted: &Wanted<'_>,
    partial: &mut Partial,
    meter: &mut Meter<'_>,
) -> Result<Vec<u8>, PackageError> {
    let version = partial.version();
    // Without a version that says more than the time, nobody knows what it continues.
    if wanted.size.is_none() && version.is_none() || wanted.size.is_some_and(|s| s < partial.have())
    {
        partial.restart(None)?;
    }
    if wanted.size == Some(partial.have()) {
        return partial.read();
    }
    let mut headers = wanted.headers.clone();
    if partial.have() > 0 {
        headers.push(("range".to_owned(), format!("bytes={}-", partial.have())));
        headers.extend(version.map(|version| ("if-range".to_owned(), version)));
    }
    let mut answer = web.follow(wanted.url, &headers).await?;
    if answer.status() == 416 {
        // It ends where the next byte was asked for, or before: it is read from its beginning.
        partial.restart(None)?;
        answer = web.follow(wanted.url, &wanted.headers).await?;
    }
    let wrong = |why: &str| {
        PackageError::new(
            &web.failed(wanted.url),
            why,
            "do it again, or tell whoever runs the server",
        )
    };
    let whole = match answer.status() {
        200 => {
            let version = answer.header("etag").filter(|tag| tag.starts_with('"'));
            partial.restart(version.filter(|_| wanted.size.is_none()))?;
            length(&answer)
        }
        206 => {
            let Some(whole) = continued(&answer, partial.have()) else {
                partial.restart(None)?;
                return Err(wrong("it went on at another place than it was asked to"));
            };
            Some(whole)
        }
        404 => return Err(PackageError::new(&web.failed(wanted.url), "there is none", "check it")),
        status => return Err(wrong(&format!("its server answers {status}"))),
    };
    let most = wanted.size.or(whole).unwrap_or(wanted.most);
    if wanted.size.is_some_and(|size| whole.is_some_and(|whole| whole != size)) {
        return Err(wrong("it has another length than it should have"));
    }
    if most > wanted.most {
        return Err(wrong("it is larger than a package may be"));
    }
    let of = meter.of.or(whole);
    (meter.tell)(Progress { done: meter.before + partial.have(), of });
    while let Some(bytes) = answer.next().await.map_err(|why| web.told(wanted.url, why))? {
        if partial.have() + bytes.len() as u64 > most {
            partial.restart(None)?;
            return Err(wrong("more came than it should have"));
        }
        partial.append(&bytes)?;
        (meter.tell)(Progress { done: meter.before + partial.have(), of });
    }
    if wanted.size.or(whole).is_some_and(|size| size != partial.have()) {
        return Err(wrong("it ended too early; what came is kept"));
    }
    partial.read()
}

fn length(answer: &Streamed) -> Option<u64> {
    answer.header("content-length")?.parse().ok()
}

/// The whole length, where an answer goes on here and to the end.
fn continued(answer: &Streamed, from: u64) -> Option<u64> {
    let range = answer.header("content-range")?.strip_prefix("bytes ")?;
    let (range, whole) = range.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, whole): (u64, u64, u64) =
        (first.parse().ok()?, last.parse().ok()?, whole.parse().ok()?);
    (first == from && last.checked_add(1)? == whole).then_some(whole)
}
