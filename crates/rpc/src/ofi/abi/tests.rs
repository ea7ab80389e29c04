//! Sizes and offsets against what a C compiler said of libfabric 1.17 (`FI_VERSION(1, 17)`), and against the installed headers
//! where they and a compiler are there.

use std::mem::{offset_of, size_of};
use std::process::Command;

use super::*;

/// Name in C, what is measured here, what the compiler said of 1.17.
fn facts() -> Vec<(&'static str, usize, usize)> {
    vec![
        ("sizeof(struct fi_info)", size_of::<FiInfo>(), 120),
        ("sizeof(struct fi_tx_attr)", size_of::<FiTxAttr>(), 80),
        ("sizeof(struct fi_rx_attr)", size_of::<FiRxAttr>(), 64),
        ("sizeof(struct fi_ep_attr)", size_of::<FiEpAttr>(), 96),
        ("sizeof(struct fi_domain_attr)", size_of::<FiDomainAttr>(), 192),
        ("sizeof(struct fi_fabric_attr)", size_of::<FiFabricAttr>(), 32),
        ("sizeof(struct fi_cq_attr)", size_of::<FiCqAttr>(), 40),
        ("sizeof(struct fi_av_attr)", size_of::<FiAvAttr>(), 48),
        ("sizeof(struct fi_cq_msg_entry)", size_of::<FiCqMsgEntry>(), 24),
        ("sizeof(struct fi_cq_err_entry)", size_of::<FiCqErrEntry>(), 80),
        ("sizeof(struct fi_msg_rma)", size_of::<FiMsgRma>(), 64),
        ("sizeof(struct fi_rma_iov)", size_of::<FiRmaIov>(), 24),
        ("sizeof(struct fid)", size_of::<Fid>(), 24),
        ("sizeof(struct fid_fabric)", size_of::<FidFabric>(), 40),
        ("sizeof(struct fid_domain)", size_of::<FidDomain>(), 40),
        ("sizeof(struct fid_ep)", size_of::<FidEp>(), 80),
        ("sizeof(struct fid_cq)", size_of::<FidCq>(), 32),
        ("sizeof(struct fid_av)", size_of::<FidAv>(), 32),
        ("sizeof(struct fid_mr)", size_of::<FidMr>(), 40),
        ("sizeof(struct fid_nic)", size_of::<FidNic>(), 56),
        ("sizeof(struct fi_link_attr)", size_of::<FiLinkAttr>(), 40),
        ("sizeof(struct fi_device_attr)", size_of::<FiDeviceAttr>(), 48),
        ("sizeof(struct fi_ops)", size_of::<FiOps>(), 56),
        ("sizeof(struct fi_ops_fabric)", size_of::<FiOpsFabric>(), 56),
        ("sizeof(struct fi_ops_domain)", size_of::<FiOpsDomain>(), 96),
        ("sizeof(struct fi_ops_mr)", size_of::<FiOpsMr>(), 32),
        ("sizeof(struct fi_ops_msg)", size_of::<FiOpsMsg>(), 80),
        ("sizeof(struct fi_ops_cm)", size_of::<FiOpsCm>(), 80),
        ("sizeof(struct fi_ops_rma)", size_of::<FiOpsRma>(), 80),
        ("sizeof(struct fi_ops_cq)", size_of::<FiOpsCq>(), 64),
        ("sizeof(struct fi_ops_av)", size_of::<FiOpsAv>(), 64),
        ("offsetof(struct fi_info, src_addr)", offset_of!(FiInfo, src_addr), 48),
        ("offsetof(struct fi_info, domain_attr)", offset_of!(FiInfo, domain_attr), 96),
        ("offsetof(struct fi_info, nic)", offset_of!(FiInfo, nic), 112),
        ("offsetof(struct fi_domain_attr, name)", offset_of!(FiDomainAttr, name), 8),
        ("offsetof(struct fi_domain_attr, mr_mode)", offset_of!(FiDomainAttr, mr_mode), 36),
        ("offsetof(struct fi_domain_attr, tclass)", offset_of!(FiDomainAttr, tclass), 184),
        ("offsetof(struct fi_ep_attr, max_msg_size)", offset_of!(FiEpAttr, max_msg_size), 16),
        ("offsetof(struct fi_tx_attr, inject_size)", offset_of!(FiTxAttr, inject_size), 40),
        ("offsetof(struct fi_link_attr, speed)", offset_of!(FiLinkAttr, speed), 16),
        ("offsetof(struct fi_cq_err_entry, err)", offset_of!(FiCqErrEntry, err), 56),
        ("offsetof(struct fi_ops_fabric, trywait)", offset_of!(FiOpsFabric, trywait), 40),
        ("offsetof(struct fi_ops_domain, endpoint)", offset_of!(FiOpsDomain, endpoint), 24),
        ("offsetof(struct fi_ops_av, remove)", offset_of!(FiOpsAv, remove), 32),
        ("offsetof(struct fi_ops_mr, regattr)", offset_of!(FiOpsMr, regattr), 24),
        ("offsetof(struct fi_mr_attr, access)", offset_of!(FiMrAttr, access), 16),
        ("offsetof(struct fi_mr_attr, requested_key)", offset_of!(FiMrAttr, requested_key), 32),
        ("offsetof(struct fi_mr_attr, auth_key)", offset_of!(FiMrAttr, auth_key), 56),
        ("offsetof(struct fi_mr_attr, iface)", offset_of!(FiMrAttr, iface), 64),
        ("offsetof(struct fi_mr_attr, device)", offset_of!(FiMrAttr, device), 72),
        ("offsetof(struct fi_ops_msg, send)", offset_of!(FiOpsMsg, send), 32),
        ("offsetof(struct fi_ops_msg, sendv)", offset_of!(FiOpsMsg, sendv), 40),
        ("offsetof(struct fi_ops_msg, inject)", offset_of!(FiOpsMsg, inject), 56),
        ("offsetof(struct fi_ops_rma, write)", offset_of!(FiOpsRma, write), 32),
        ("offsetof(struct fi_ops_rma, writemsg)", offset_of!(FiOpsRma, writemsg), 48),
        ("offsetof(struct fi_ops_cq, readerr)", offset_of!(FiOpsCq, readerr), 24),
        ("offsetof(struct fi_ops_cm, getname)", offset_of!(FiOpsCm, getname), 16),
        ("FI_MSG", FI_MSG as usize, 2),
        ("FI_RMA", FI_RMA as usize, 4),
        ("FI_REMOTE_WRITE", FI_REMOTE_WRITE as usize, 8192),
        ("FI_DELIVERY_COMPLETE", FI_DELIVERY_COMPLETE as usize, 1 << 28),
        ("FI_MR_ENDPOINT", FI_MR_ENDPOINT as usize, 512),
        ("FI_MR_HMEM", FI_MR_HMEM as usize, 1024),
        ("FI_HMEM", FI_HMEM as usize, 1 << 47),
        ("FI_HMEM_SYSTEM", FI_HMEM_SYSTEM as usize, 0),
        ("FI_HMEM_CUDA", FI_HMEM_CUDA as usize, 1),
        ("FI_ORDER_SAW", FI_ORDER_SAW as usize, 128),
        ("FI_THREAD_DOMAIN", FI_THREAD_DOMAIN as usize, 3),
        ("FI_EP_RDM", FI_EP_RDM as usize, 3),
        ("FI_WAIT_FD", FI_WAIT_FD as usize, 3),
        ("FI_CQ_FORMAT_MSG", FI_CQ_FORMAT_MSG as usize, 2),
        ("FI_GETWAIT", FI_GETWAIT as usize, 5),
        ("FI_ENABLE", FI_ENABLE as usize, 6),
        ("FI_EAVAIL", FI_EAVAIL as usize, 259),
        ("FI_ETRUNC", FI_ETRUNC as usize, 265),
        ("FI_ENOKEY", FI_ENOKEY as usize, 266),
    ]
}

#[test]
fn layouts_are_those_of_1_17() {
    for (name, here, there) in facts() {
        assert_eq!(here, there, "{name}");
    }
}

#[test]
fn layouts_are_those_of_the_installed_headers() {
    if !std::path::Path::new("/usr/include/rdma/fabric.h").exists() {
        println!("skipped: no rdma/fabric.h here (Debian: libfabric-dev)");
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let (source, program) = (folder.path().join("facts.c"), folder.path().join("facts"));
    let mut text = "#include <stdio.h>\n#include <stddef.h>\n".to_string();
    for header in ["fabric", "fi_domain", "fi_endpoint", "fi_eq", "fi_cm", "fi_rma", "fi_errno"] {
        text += &format!("#include <rdma/{header}.h>\n");
    }
    text += "int main(void) {\nprintf(\"%d.%d\\n\", FI_MAJOR_VERSION, FI_MINOR_VERSION);\n";
    for (name, ..) in facts() {
        text += &format!("printf(\"%zu\\n\", (size_t)({name}));\n");
    }
    std::fs::write(&source, text + "return 0; }\n").expect("source");
    match Command::new("cc").arg("-o").arg(&program).arg(&source).status() {
        Ok(status) => assert!(status.success(), "the C compiler refused the program"),
        Err(_) => return println!("skipped: no C compiler here (Debian: gcc)"),
    }
    let output = Command::new(&program).output().expect("runs").stdout;
    let output = String::from_utf8(output).expect("text");
    let mut lines = output.lines();
    let version = lines.next().expect("version");
    // Later versions append to structures; what is used here keeps its place, but sizes differ.
    if version != "1.17" {
        return println!("skipped: the headers are those of {version}, not 1.17");
    }
    for ((name, here, _), there) in facts().into_iter().zip(lines) {
        assert_eq!(here.to_string(), there, "{name}");
    }
}
