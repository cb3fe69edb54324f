//! The network of a world in memory: pages by their URLs.
//!
//! # Invariants
//! 1. No packet leaves: a URL without a page is an address that nobody has.
//!
//! # Not here
//! All else of the world (`synapse_primitives::memory`), what a case puts here (`case`).

use core::future::ready;
use core::net::{IpAddr, Ipv4Addr};

use synapse_boundary::url::Url;
use synapse_primitives::Fault;
use synapse_primitives::platform::{Fetch, Fetched, Fetching, Net};

use crate::case::Page;

#[derive(Debug)]
pub(crate) struct Pages(pub(crate) Vec<(String, Page)>);

impl Net for Pages {
    fn fetch<'a>(&'a self, asked: Fetch<'a>) -> Fetching<'a> {
        Box::pin(ready(self.answer(&asked)))
    }
}

impl Pages {
    fn answer(&self, asked: &Fetch<'_>) -> Result<Fetched, Fault> {
        let is_asked = |url: &str| Url::parse(url).is_ok_and(|url| url == asked.url);
        let page = self.0.iter().find(|(url, _)| is_asked(url));
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
}

/// An address that all the world reaches, for names.
const SOMEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1));
