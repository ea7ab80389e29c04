mod cache;
mod choice;
#[path = "../../../../host/src/network/tests/made_up.rs"]
mod made_up;
mod namespace;
mod overrides;
mod table;

use std::path::Path;

use host::network::{InterfaceAddress, Link, links_of_tree};
use host::topology::NumaPlace;

use made_up::{Nic, Tree};

use super::*;

/// Two sockets with two cards each, all with addresses.
fn two_sockets(root: &Path) -> Tree {
    let tree = Tree::new(root);
    for (index, node) in [(2, 0), (3, 0), (4, 1), (5, 1)] {
        let name = format!("ib{}", index - 2);
        tree.add(&Nic::card(&name, index, node));
        tree.rdma(&format!("mlx5_{}", index - 2), &name, "4: ACTIVE");
    }
    tree
}

/// The links of a tree; number `index` has the address 10.0.`index`.1/24, loopback its own.
fn links(tree: &Tree) -> Vec<Link> {
    let mut links = links_of_tree(&tree.class());
    for link in &mut links {
        let address = match link.name.as_str() {
            "lo" => InterfaceAddress { address: [127, 0, 0, 1].into(), prefix_bits: 8 },
            _ => InterfaceAddress { address: [10, 0, link.index as u8, 1].into(), prefix_bits: 24 },
        };
        link.addresses.push(address);
    }
    links
}

fn scan_with(tree: &Tree, links: Vec<Link>, providers: Providers<'_>) -> FabricScan {
    let machine = Machine::new(&tree.class(), move || Ok(links.clone()));
    machine.scan(machine.key().unwrap(), providers)
}

fn scan(tree: &Tree) -> FabricScan {
    scan_with(tree, links(tree), &|| Err("libfabric.so.1 is not installed".to_owned()))
}

fn facts(name: &str, domain: &str) -> ProviderFacts {
    ProviderFacts { name: name.to_owned(), domain: domain.to_owned() }
}

/// A process bound to a node of a machine with two.
fn bound(node: u32) -> NumaPlace {
    NumaPlace { node: Some(node), is_bound: true, nodes: 2 }
}

/// Turns that count in memory.
#[derive(Default)]
struct Counted(std::collections::BTreeMap<String, u64>);

impl Turns for Counted {
    fn next(&mut self, set: &str) -> u64 {
        let count = self.0.entry(set.to_owned()).or_default();
        *count += 1;
        *count - 1
    }
}
