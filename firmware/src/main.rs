//! The image: nothing but the library, linked by `layout.ld`
#![no_std]
#![no_main]

use synapse_firmware as _;
