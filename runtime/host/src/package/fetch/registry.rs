//! A repository of a registry, and who it is told that asks.
//!
//! As little of the distribution protocol as packages take: manifests, what refers to
//! them, and a token or a password where one is wanted.
//!
//! # Invariants
//! - What a registry says of a package decides nothing: whoever asked holds it against
//!   its digest.
//! - A token is asked for this repository, for what will be done, and goes to the registry
//!   alone.
//!
//! # Not here
//! What an image of a package holds (`synapse_kernel::package`). Its blobs (`pull`, `push`).

use serde_json::Value;
use synapse_boundary::url::Url;

use synapse_kernel::package::{IMAGE, INDEX, SIGNATURE};
use synapse_secrets::vault::Vault;

use super::super::{Digest, PackageError};
use super::address::{Image, server};
use super::challenge::Challenge;
use super::web::{AUTHORIZATION, Document, Request, Web};
use super::{other, password};
use crate::net::Client;

/// Bytes of a document that is no blob.
const DOCUMENT_MAX: usize = 1 << 20;

/// Bytes of a token.
const TOKEN_MAX: usize = 16 << 10;

/// What is done with a repository.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Pull,
    Push,
}

pub(super) struct Registry<'a> {
    pub(super) web: Web<'a>,
    /// The URL of the repository.
    pub(super) base: String,
    image: &'a Image,
    work: Work,
    vault: &'a Vault,
    /// The secret that is its password.
    password: Option<String>,
    access: Access,
}

/// Who is said to ask.
enum Access {
    Anybody,
    Password,
    Token(String),
}

impl<'a> Registry<'a> {
    /// The repository of an image.
    pub(super) fn new(
        image: &'a Image,
        work: Work,
        client: &'a Client,
        vault: &'a Vault,
    ) -> Result<Self, PackageError> {
        let server = server(&image.authority);
        let done = match work {
            Work::Pull => "fetched",
            Work::Push => "pushed",
        };
        let web = Web::new(client, &server, done)?;
        let base = format!("{server}v2/{}", image.repository);
        Ok(Self { web, base, image, work, vault, password: None, access: Access::Anybody })
    }

    /// The manifest or index of this name, if there is one.
    pub(super) async fn manifest(
        &mut self,
        name: &str,
        kind: &str,
    ) -> Result<Option<Vec<u8>>, PackageError> {
        let url = format!("{}/manifests/{name}", self.base);
        self.found(&url, kind).await
    }

    async fn found(&mut self, url: &str, kind: &str) -> Result<Option<Vec<u8>>, PackageError> {
        let accept = [("accept".to_owned(), kind.to_owned())];
        let answer = self.ask(&Request::get(url, &accept)).await?;
        match answer.status() {
            200 => Ok(Some(answer.body)),
            404 => Ok(None),
            status => Err(self.refused(url, status)),
        }
    }

    /// Asks, and says who asks where the registry wants to know.
    pub(super) async fn ask(&mut self, request: &Request<'_>) -> Result<Document, PackageError> {
        let answer = self.told(request).await?;
        if answer.status() != 401 || matches!(self.access, Access::Password) {
            return Ok(answer);
        }
        // A token that was good may have come to its end.
        self.access = self.admitted(answer.header("www-authenticate")).await?;
        self.told(request).await
    }

    async fn told(&self, request: &Request<'_>) -> Result<Document, PackageError> {
        let mut headers = self.headers();
        headers.extend_from_slice(request.headers);
        let Request { url, content, .. } = *request;
        let request = Request { method: request.method.clone(), url, headers: &headers, content };
        self.web.document(&request, DOCUMENT_MAX).await
    }

    /// What says who asks.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let value = match &self.access {
            Access::Anybody => return Vec::new(),
            Access::Password => password::HEADER.to_owned(),
            Access::Token(token) => format!("Bearer {token}"),
        };
        vec![(AUTHORIZATION.to_owned(), value)]
    }

    /// What a registry takes that wants to know who asks: the password that is kept for it,
    /// or a token, for whom the password names or for anybody.
    async fn admitted(&mut self, challenge: Option<&str>) -> Result<Access, PackageError> {
        if self.password.is_none()
            && let Some((name, given)) = password::of(self.vault, &self.image.authority)?
        {
            self.password = Some(name);
            self.web.with_password(given);
        }
        let does = match self.work {
            Work::Pull => "pull",
            Work::Push => "pull,push",
        };
        let scope = format!("repository:{}:{does}", self.image.repository);
        let strange =
            || self.strange("the registry wants to know who asks, in a way that is not known here");
        let url = match challenge.and_then(|told| Challenge::read(told, &scope)) {
            None => return Err(strange()),
            Some(Challenge::Password) if self.password.is_none() => {
                return Err(self.refused(&self.base, 401));
            }
            Some(Challenge::Password) => return Ok(Access::Password),
            Some(Challenge::Token(url)) => url,
        };
        let mut headers = Vec::new();
        if let Some(name) = &self.password {
            self.named(name, &url)?;
            headers.push((AUTHORIZATION.to_owned(), password::HEADER.to_owned()));
        }
        let answer = self.web.document(&Request::get(&url, &headers), DOCUMENT_MAX).await?;
        if matches!(answer.status(), 401 | 403) {
            return Err(self.refused(&self.base, answer.status()));
        }
        let told: Value = serde_json::from_slice(&answer.body).map_err(|_| strange())?;
        let token = ["token", "access_token"].iter().find_map(|key| told.get(key)?.as_str());
        let token = token.filter(|token| {
            answer.status() == 200
                && (1..=TOKEN_MAX).contains(&token.len())
                && token.bytes().all(|byte| byte.is_ascii_graphic())
        });
        token.map(|token| Access::Token(token.to_owned())).ok_or_else(strange)
    }

    /// Whether the person named whoever gives tokens as one to be told the password.
    fn named(&self, secret: &str, url: &str) -> Result<(), PackageError> {
        if self.web.tells(url) {
            return Ok(());
        }
        let at = url.split('/').nth(2).unwrap_or_default();
        // Only what can be told to `synapse secret set` is put before the person.
        if Url::parse(url).is_err() || !url.starts_with(&server(at)) {
            return Err(self.strange("it asks for the password where no password may be sent"));
        }
        Err(PackageError::new(
            &self.failed(),
            &format!(
                "the registry asks for the password at `{at}`, and `{secret}` is not for there"
            ),
            &format!(
                "if whoever runs it says that this is right: `synapse secret set {secret} --for \
                 oci://{} --for oci://{at}`",
                self.image.authority
            ),
        ))
    }

    /// The manifest of the signature of an image, if it has one.
    pub(super) async fn signature(&mut self, of: &Digest) -> Result<Option<Vec<u8>>, PackageError> {
        // A registry that does not know of referrers has them under a tag.
        let url = format!("{}/referrers/{of}", self.base);
        let listed = match self.found(&url, INDEX).await? {
            Some(listed) => Some(listed),
            None => self.manifest(&format!("sha256-{}", of.digits()), INDEX).await?,
        };
        let Some(listed) = listed else { return Ok(None) };
        let strange = |why: &str| self.strange(why);
        let listed: Value = serde_json::from_slice(&listed)
            .map_err(|_| strange("its list of what refers to the package is no list"))?;
        let listed = listed.get("manifests").and_then(Value::as_array).into_iter().flatten();
        let mut signatures = listed
            .filter(|entry| entry.get("artifactType").and_then(Value::as_str) == Some(SIGNATURE));
        let Some(signature) = signatures.next() else { return Ok(None) };
        // Two pushes at once may list one twice.
        if signatures.any(|other| other.get("digest") != signature.get("digest")) {
            return Err(PackageError::new(
                &self.failed(),
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
                &self.failed(),
                "its signature is listed and not there",
                "ask its publisher",
            )),
        }
    }

    /// What happened.
    pub(super) fn failed(&self) -> String {
        self.web.failed(&self.base)
    }

    /// What cannot be made sense of.
    pub(super) fn strange(&self, why: &str) -> PackageError {
        PackageError::new(&self.failed(), why, "tell whoever runs the registry")
    }

    /// Why a registry says no.
    pub(super) fn refused(&self, url: &str, status: u16) -> PackageError {
        let at = &self.image.authority;
        let (why, todo) = match (status, &self.password) {
            (401 | 403, None) => (
                "the registry does not let everybody do this".to_owned(),
                format!(
                    "if you have a password there, keep it as USER:PASSWORD with `synapse secret \
                     set NAME --for oci://{at}`"
                ),
            ),
            (401 | 403, Some(name)) => (
                format!("the registry does not let whom the secret `{name}` names do this"),
                format!(
                    "check what its user may do there; to give it anew: `synapse secret set {name}`"
                ),
            ),
            (status, _) => (
                format!("the registry answers {status}"),
                "do it again, or tell whoever runs the registry".to_owned(),
            ),
        };
        PackageError::new(&self.web.failed(url), &why, &todo)
    }
}
