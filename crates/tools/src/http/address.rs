//! From a name to addresses, and which of them may be reached.

use async_trait::async_trait;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How names become addresses.
#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of a name. It is asked once for each request.
    ///
    /// # Errors
    /// When the name has none, or nobody can say.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's names.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect())
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(a: u16, b: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), length)
}

/// What the registries of special addresses keep from the public network, and what leads to it.
const NOT_PUBLIC_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];

/// All public addresses of version 6 so far.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Those of them that are for protocols, for books, or lead to an address of version 4 that nobody looked at.
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [v6(0x2001, 0, 23), v6(0x2001, 0xdb8, 32), v6(0x2002, 0, 16), v6(0x3fff, 0, 20)];

/// Whether a connection to the address may be made.
pub(super) fn may_be_reached(address: IpAddr, allowed: &[IpNet]) -> bool {
    // An address of version 4 in the dress of version 6 goes where version 4 goes.
    let address = address.to_canonical();
    if allowed.iter().any(|network| network.contains(&address)) {
        return true;
    }
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !NOT_PUBLIC_V6.iter().any(|network| network.contains(&address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_may_be_reached() {
        for public in [
            "8.8.8.8",
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00::1",
            "2001:200::1",
            "::ffff:8.8.8.8",
        ] {
            assert!(may_be_reached(public.parse().unwrap(), &[]), "{public}");
        }
        for other in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!may_be_reached(other.parse().unwrap(), &[]), "{other}");
        }
    }

    #[test]
    fn a_network_may_be_allowed() {
        let allowed = ["127.0.0.2/32".parse().unwrap(), "fd00::/8".parse().unwrap()];
        for (address, reached) in [
            ("127.0.0.2", true),
            ("::ffff:127.0.0.2", true),
            ("127.0.0.1", false),
            ("fd12::1", true),
            ("fc12::1", false),
        ] {
            assert_eq!(may_be_reached(address.parse().unwrap(), &allowed), reached, "{address}");
        }
    }
}
