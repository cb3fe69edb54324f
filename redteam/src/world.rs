//! A world in memory with pages in it: files, a clock, connectors and a network.
//!
//! # Invariants
//! 1. No packet leaves: a URL without a page is an address that nobody has.
//!
//! # Not here
//! The files (`synapse_primitives::memory`), what a case puts here (`case`).

use core::net::{IpAddr, Ipv4Addr};

use synapse_boundary::url::Url;
use synapse_primitives::memory::Memory;
use synapse_primitives::platform::{
    Admits, Asker, Fetch, Fetched, Journal, Listing, Mode, Shown, Use, Used, Written,
};
use synapse_primitives::rest::Creator;
use synapse_primitives::state::Standing;
use synapse_primitives::{Fault, Platform};

use crate::case::Page;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) memory: Memory,
    pub(crate) pages: Vec<(String, Page)>,
}

impl Platform for World {
    async fn read(&self, path: &str, offset: u64, length: u64) -> Result<Shown, Fault> {
        self.memory.read(path, offset, length).await
    }

    async fn list(&self, path: &str, after: &str, limit: u64) -> Result<Listing, Fault> {
        self.memory.list(path, after, limit).await
    }

    async fn state(&self, path: &str) -> Result<Standing, Fault> {
        self.memory.state(path).await
    }

    async fn write(
        &self,
        path: &str,
        content: &[u8],
        mode: Mode,
        journal: Journal,
    ) -> Result<Written, Fault> {
        self.memory.write(path, content, mode, journal).await
    }

    async fn edit(
        &self,
        path: &str,
        old: &[u8],
        new: &[u8],
        journal: Journal,
    ) -> Result<Written, Fault> {
        self.memory.edit(path, old, new, journal).await
    }

    async fn rename(
        &self,
        from: &str,
        to: &str,
        journal: Journal,
        admits: &Admits<'_>,
    ) -> Result<(), Fault> {
        self.memory.rename(from, to, journal, admits).await
    }

    async fn remove(
        &self,
        path: &str,
        journal: Journal,
        admits: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<u64, Fault> {
        self.memory.remove(path, journal, admits).await
    }

    async fn show(&self, bytes: &[u8]) -> Result<(), Fault> {
        self.memory.show(bytes).await
    }

    async fn ask(&self, question: &[u8], asker: Asker) -> Result<Vec<u8>, Fault> {
        self.memory.ask(question, asker).await
    }

    async fn fetch(&self, asked: Fetch<'_>) -> Result<Fetched, Fault> {
        let is_asked = |url: &str| Url::parse(url).is_ok_and(|url| url == asked.url);
        let page = self.pages.iter().find(|(url, _)| is_asked(url));
        let (_, page) = page.ok_or(Fault::NotFound)?;
        let address = page.address.unwrap_or(SOMEWHERE);
        if !(asked.admits)(address) {
            return Err(Fault::Address);
        }
        if page.body.len() > asked.most {
            return Err(Fault::ReplyTooLarge);
        }
        let header = |(name, value): (&String, &String)| (name.clone(), value.as_bytes().to_vec());
        Ok(Fetched {
            status: page.status,
            headers: page.headers.iter().map(header).collect(),
            body: page.body.as_bytes().to_vec(),
        })
    }

    async fn tool(&self, call: Use<'_>) -> Used {
        self.memory.tool(call).await
    }

    async fn sleep(&self, ms: u64) {
        self.memory.sleep(ms).await;
    }

    fn now_ms(&self) -> u64 {
        self.memory.now_ms()
    }

    fn is_own(&self, path: &str, creator: Creator) -> bool {
        self.memory.is_own(path, creator)
    }

    fn mounts(&self) -> Vec<(String, String)> {
        self.memory.mounts()
    }
}

/// An address that all the world reaches, for names.
const SOMEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1));
