//! Compiles the control protocol, without an installed compiler of protocol buffers.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/control.proto");
    let files = protox::compile(["proto/control.proto"], ["proto"])?;
    tonic_prost_build::configure().build_transport(false).emit_rerun_if_changed(false).compile_fds(files)?;
    Ok(())
}
