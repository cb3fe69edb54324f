#![no_std]
#![cfg_attr(not(test), allow(missing_docs))]
