//! Links the image by `layout.ld`, without what an operating system would give

fn main() {
    println!("cargo::rerun-if-changed=layout.ld");
    // As seen from the workspace, where the linker runs: two clones may share what they
    // build, and an absolute name would link the image of one by the file of the other.
    println!("cargo::rustc-link-arg-bins=-Tfirmware/layout.ld");
    for flag in [
        "-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,--icf=all",
        "-Wl,--nmagic",
    ] {
        println!("cargo::rustc-link-arg-bins={flag}");
    }
}
