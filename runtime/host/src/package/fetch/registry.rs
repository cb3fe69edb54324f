//! A package that is an image of a registry, pulled part by part.
//!
//! As little of the distribution protocol as that takes: an image's manifest, its blobs,
//! the signature that refers to it, and a token for whom anybody may be.
//!
//! # Invariants
//! - Each part is held against its digest, and the parts against the one spelling of a
//!   package: what a registry says of them decides nothing.
//! - A token is asked for this repository, to pull, and goes to the registry alone.
//!
//! # Not here
//! What an image of a package holds (`synapse_kernel::package`). Pushing one.

use serde_json::Value;

use synapse_kernel::package::{
    Descriptor, IMAGE, INDEX, PACKAGE_MAX, SIGNATURE, parts as parts_of,
};

use super::super::{Digest, Package, PackageError};
use super::address::Image;
use super::download::{self, Meter, Wanted};
use super::partial::{Downloads, Partial};
use super::web::{AUTHORIZATION, Document, Web, failed, is_here};
use super::{Progress, other};
use crate::net::Client;
use synapse_boundary::url::Url;

/// Bytes of a document that is no blob.
const DOCUMENT_MAX: usize = 1 << 20;

/// Bytes of a token.
const TOKEN_MAX: usize = 16 << 10;

/// Pulls a package.
pub(super) async fn pull(
    image: &Image,
    client: &Client,
    downloads: &Downloads,
    tell: &mut dyn FnMut(Progress),
) -> Result<Package, PackageError> {
    let secure = format!("https://{}/", image.authority);
    let here = Url::parse(&secure).is_ok_and(|url| is_here(&url));
    let server = if here { format!("http://{}/", image.authority) } else { secure };
    let base = format!("{server}v2/{}", image.repository);
    let web = Web::new(client, &server)?;
    let mut registry = Registry { web, base, repository: &image.repository, token: None };

    let pin = image.pin.map(|pin| pin.to_string());
    let name = pin.as_deref().or(image.tag.as_deref()).unwrap_or_default();
    let found = registry.manifest(name, IMAGE).await?;
    let found = found.ok_or_else(|| {
        PackageError::new(
            &failed(&registry.base),
            &format!("the registry has no `{name}` of it"),
            "check the name and the tag, and whether anybody may pull it",
        )
    })?;
    let digest = Digest::of(&found);
    if let Some(pin) = image.pin.filter(|pin| *pin != digest) {
        return Err(other(&pin, &digest));
    }
    let signature = registry.signature(&digest).await?;
    let mut parts = parts_of(&found)?;
    if let Some(signature) = &signature {
        parts.extend(parts_of(signature)?);
    }
    let of = parts.iter().map(|part| part.size).fold(0, u64::saturating_add);
    if of > PACKAGE_MAX as u64 {
        return Err(PackageError::new(
            &failed(&registry.base),
            "its parts have more than 120 MiB",
            "ask its publisher for a smaller one",
        ));
    }
    let (mut kept, mut blobs) = (Vec::<Partial>::new(), Vec::<(String, Vec<u8>)>::new());
    let mut meter = Meter { before: 0, of: Some(of), tell };
    for part in &parts {
        if blobs.iter().all(|(digest, _)| *digest != part.digest) {
            let (bytes, partial) = registry.blob(part, downloads, &mut meter).await?;
            blobs.push((part.digest.clone(), bytes));
            kept.push(partial);
        }
        meter.before += part.size;
    }
    let blob = |part: &Descriptor| {
        let mut found = blobs.iter().filter(|(digest, _)| *digest == part.digest);
        found.next().map(|(_, bytes)| &**bytes)
    };
    let package = Package::assemble(&found, signature.as_deref(), &blob);
    // They have their digests: fetched once more, they would be the same.
    kept.into_iter().for_each(Partial::forget);
    package
}

struct Registry<'a> {
    web: Web<'a>,
    /// The URL of the repository.
    base: String,
    repository: &'a str,
    token: Option<String>,
}

impl Registry<'_> {
    /// The manifest or index of this name, if there is one.
    async fn manifest(&mut self, name: &str, kind: &str) -> Result<Option<Vec<u8>>, PackageError> {
        let url = format!("{}/manifests/{name}", self.base);
        self.found(&url, kind).await
    }

    async fn found(&mut self, url: &str, kind: &str) -> Result<Option<Vec<u8>>, PackageError> {
        let mut answer = self.ask(url, kind).await?;
        if answer.status == 401 && self.token.is_none() {
            self.token = Some(self.authorized(answer.challenge.as_deref()).await?);
            answer = self.ask(url, kind).await?;
        }
        match answer.status {
            200 => Ok(Some(answer.body)),
            404 => Ok(None),
            401 | 403 => Err(PackageError::new(
                &failed(url),
                "the registry does not give it to everybody",
                "packages that need a password are not fetched; save its file, and install that",
            )),
            status => Err(PackageError::new(
                &failed(url),
                &format!("the registry answers {status}"),
                "do it again, or tell whoever runs the registry",
            )),
        }
    }

    async fn ask(&self, url: &str, kind: &str) -> Result<Document, PackageError> {
        let mut headers = self.headers();
        headers.push(("accept".to_owned(), kind.to_owned()));
        self.web.document(url, &headers, DOCUMENT_MAX).await
    }

    fn headers(&self) -> Vec<(String, String)> {
        let token = self.token.iter();
        token.map(|token| (AUTHORIZATION.to_owned(), format!("Bearer {token}"))).collect()
    }

    /// The token that anybody gets who wants to pull.
    async fn authorized(&self, challenge: Option<&str>) -> Result<String, PackageError> {
        let strange = || {
            PackageError::new(
                &failed(&self.base),
                "the registry wants to know who asks, in a way that is not known here",
                "save the package's file, and install that",
            )
        };
        let challenge = challenge.and_then(bearer).ok_or_else(strange)?;
        let (mut realm, mut service) = (None, None);
        for (name, value) in challenge {
            match &*name {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                _ => {}
            }
        }
        let mut url = realm.ok_or_else(strange)?;
        url.push(if url.contains('?') { '&' } else { '?' });
        if let Some(service) = service {
            url.push_str(&format!("service={}&", escaped(&service)));
        }
        url.push_str(&format!("scope=repository:{}:pull", self.repository));
        let answer = self.web.document(&url, &[], DOCUMENT_MAX).await?;
        let told: Value = serde_json::from_slice(&answer.body).map_err(|_| strange())?;
        let token = ["token", "access_token"].iter().find_map(|key| told.get(key)?.as_str());
        let token = token.filter(|token| {
            answer.status == 200
                && (1..=TOKEN_MAX).contains(&token.len())
                && token.bytes().all(|byte| byte.is_ascii_graphic())
        });
        token.map(ToOwned::to_owned).ok_or_else(strange)
    }

    /// The manifest of the signature of an image, if it has one.
    async fn signature(&mut self, of: &Digest) -> Result<Option<Vec<u8>>, PackageError> {
        // A registry that does not know of referrers has them under a tag.
        let url = format!("{}/referrers/{of}", self.base);
        let listed = match self.found(&url, INDEX).await? {
            Some(listed) => Some(listed),
            None => self.manifest(&format!("sha256-{}", of.digits()), INDEX).await?,
        };
        let Some(listed) = listed else { return Ok(None) };
        let strange = |why: &str| {
            PackageError::new(&failed(&self.base), why, "tell whoever runs the registry")
        };
        let listed: Value = serde_json::from_slice(&listed)
            .map_err(|_| strange("its list of what refers to the package is no list"))?;
        let listed = listed.get("manifests").and_then(Value::as_array).into_iter().flatten();
        let mut signatures = listed
            .filter(|entry| entry.get("artifactType").and_then(Value::as_str) == Some(SIGNATURE));
        let Some(signature) = signatures.next() else { return Ok(None) };
        if signatures.next().is_some() {
            return Err(PackageError::new(
                &failed(&self.base),
                "it bears two signatures there, and a package has one",
                "ask its publisher to remove the one that is not meant",
            ));
        }
        let digest = signature.get("digest").and_then(Value::as_str).and_then(Digest::parse);
        let digest = digest.ok_or_else(|| strange("its signature has no digest"))?;
        let found = self.manifest(&digest.to_string(), IMAGE).await?;
        match found {
            Some(found) if Digest::of(&found) == digest => Ok(Some(found)),
            Some(found) => Err(other(&digest, &Digest::of(&found))),
            None => Err(PackageError::new(
                &failed(&self.base),
                "its signature is listed and not there",
                "ask its publisher",
            )),
        }
    }

    async fn blob(
        &self,
        part: &Descriptor,
        downloads: &Downloads,
        meter: &mut Meter<'_>,
    ) -> Result<(Vec<u8>, Partial), PackageError> {
        let url = format!("{}/blobs/{}", self.base, part.digest);
        let digest = Digest::parse(&part.digest).ok_or_else(|| {
            PackageError::new(&failed(&url), "it is no digest", "ask its publisher")
        })?;
        let mut partial = downloads.partial(&digest.digits())?;
        let wanted = Wanted {
            url: &url,
            headers: self.headers(),
            size: Some(part.size),
            most: PACKAGE_MAX as u64,
        };
        let bytes = download::download(&self.web, &wanted, &mut partial, meter).await?;
        if Digest::of(&bytes) == digest {
            return Ok((bytes, partial));
        }
        partial.forget();
        Err(other(&digest, &Digest::of(&bytes)))
    }
}

/// The parameters of a challenge for a token.
fn bearer(challenge: &str) -> Option<Vec<(String, String)>> {
    let (scheme, mut rest) = challenge.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut parameters = Vec::new();
    while !rest.trim().is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        parameters.push((name.trim().to_ascii_lowercase(), value.to_owned()));
        rest = after.trim_start().trim_start_matches(',');
    }
    Some(parameters)
}

/// A text as it stands in a query.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::{bearer, escaped};

    #[test]
    fn a_challenge_is_read_or_not() {
        let read = bearer(r#"Bearer realm="https://a.example/t",service="s, t", scope="x""#);
        let [(_, realm), (_, service), (name, _)] = &*read.unwrap() else { unreachable!() };
        assert_eq!((&**realm, &**service, &**name), ("https://a.example/t", "s, t", "scope"));
        assert_eq!(bearer("Basic realm=\"x\""), None);
        assert_eq!(bearer("Bearer realm=x"), None);
        assert_eq!(bearer("Bearer realm=\"x"), None);
    }

    #[test]
    fn a_service_stays_one_value() {
        assert_eq!(escaped("a b&scope=c\u{e9}"), "a%20b%26scope%3Dc%C3%A9");
    }
}
