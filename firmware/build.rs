//! Links the image by `layout.ld`, without what an operating system would give

fn main() {
    let layout = concat!(env!("CARGO_MANIFEST_DIR"), "/layout.ld");
    println!("cargo::rerun-if-changed={layout}");
    println!("cargo::rustc-link-arg-bins=-T{layout}");
    for flag in
        ["-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,--icf=all"]
    {
        println!("cargo::rustc-link-arg-bins={flag}");
    }
}
