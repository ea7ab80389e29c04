//! The side of the other ranks: each serves rank 0 alone, and ends with it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind, Secret};
use fleet::{ControlRequest, ControlServer};

use super::Launched;
use super::channel::{Channel, LEAVES, Offer, Way, told_address};
use crate::lifetime;
use crate::service::ServiceAgent;

/// How often a rank looks whether its leader is there.
const LOOK: Duration = Duration::from_millis(20);
/// How long a leader may be without a connection before it counts as gone.
const GONE_AFTER: Duration = Duration::from_secs(2);
/// After a signal, which the leader has most likely got too: how long it has to end this rank in order.
const SIGNAL_WAIT: Duration = Duration::from_secs(3);
/// How much longer a rank waits than rank 0, which then has a cause to tell.
const LONGER: Duration = Duration::from_secs(5);

/// How the wait for orders ends.
enum End {
    /// Rank 0 has ended it, or has no run.
    Told,
    /// A signal came, and no word of rank 0 after it.
    Signal,
    Failed(Error),
}

/// Serves rank 0 until it says that the run has ended; the exit code.
///
/// # Errors
/// When rank 0 does not come, or goes without a word.
pub(crate) fn serve(launched: &Launched) -> Result<u8, Error> {
    serve_rank(launched).map_err(|error| error.with("rank", launched.rank))
}

fn serve_rank(launched: &Launched) -> Result<u8, Error> {
    let way = Way::of(launched)?;
    let ending = lifetime::begin(false)?;
    let (server, channel) = match way {
        Way::Known { secret } => (start(&listen_at(launched)?, secret, &ending.sender)?, None),
        Way::Channel(mut channel) => {
            // The address is known when it listens, and so the secret comes first.
            let offer = Offer::at(String::new())?;
            let secret = Secret::new(offer.token.as_bytes())
                .ok_or_else(|| Error::new(ErrorKind::Run, "launcher", "the random token is too short"))?;
            let server = start(&listen_at(launched)?, secret, &ending.sender)?;
            let address = format!("{}:{}", reached_at(launched)?, server.address().port());
            channel.say(&Offer { address, ..offer }.to_text(), Instant::now() + launched.wait + LONGER)?;
            (server, Some(channel))
        }
    };
    let mut rank = Rank { launched, server: &server, channel, begun: Instant::now(), met: None };
    let end = rank.attend(&ending.receiver);
    if let Some(mut channel) = rank.channel.take() {
        channel.end();
    }
    server.stop();
    match end {
        End::Told => Ok(0),
        End::Signal => Ok(1),
        End::Failed(error) => Err(error),
    }
}

struct Rank<'a> {
    launched: &'a Launched,
    server: &'a ControlServer,
    /// Until rank 0 has come.
    channel: Option<Box<dyn Channel>>,
    begun: Instant,
    /// When rank 0 was last seen to be connected.
    met: Option<Instant>,
}

impl Rank<'_> {
    fn attend(&mut self, told: &std::sync::mpsc::Receiver<String>) -> End {
        let mut signalled: Option<Instant> = None;
        loop {
            match told.recv_timeout(LOOK) {
                Ok(why) if why.starts_with("signal") => {
                    self.server.interrupt();
                    signalled.get_or_insert_with(Instant::now);
                }
                Ok(_) => return End::Told,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let has_waited = |since: Instant| since.elapsed() > SIGNAL_WAIT || self.met.is_none();
            if signalled.is_some_and(has_waited) {
                return End::Signal;
            }
            match self.look() {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(error) => return End::Failed(error),
            }
        }
    }

    /// Looks whether rank 0 is there, or never will be.
    fn look(&mut self) -> Result<Option<End>, Error> {
        let failed = |message: String| Ok(Some(End::Failed(Error::new(ErrorKind::Run, "launcher", message))));
        if self.server.callers() > 0 {
            self.met = Some(Instant::now());
            if let Some(mut channel) = self.channel.take() {
                channel.end();
            }
            return Ok(None);
        }
        match self.met {
            Some(seen) if seen.elapsed() > GONE_AFTER => failed("rank 0 has ended".to_owned()),
            Some(_) => Ok(None),
            None if self.begun.elapsed() > self.launched.wait + LONGER => {
                failed(format!("rank 0 did not connect within {:?}", self.launched.wait + LONGER))
            }
            None => {
                let until = Instant::now() + LONGER;
                let said =
                    self.channel.as_mut().map(|channel| channel.heard(0, until)).transpose()?.flatten();
                Ok(said.filter(|text| text == LEAVES).map(|_| End::Told))
            }
        }
    }
}

/// Addresses to listen at, the first that can be had.
fn listen_at(launched: &Launched) -> Result<Vec<String>, Error> {
    let any = |port: u16| vec![format!("[::]:{port}"), format!("0.0.0.0:{port}")];
    let Some(told) = told_address(launched.rank)? else {
        return Ok(if launched.is_one_machine { vec!["127.0.0.1:0".to_owned()] } else { any(0) });
    };
    Ok(match (told.host().parse::<IpAddr>(), launched.launcher) {
        (Ok(IpAddr::V6(address)), "kubernetes") => vec![format!("[{address}]:{}", told.port())],
        (Ok(address), "kubernetes") => vec![format!("{address}:{}", told.port())],
        // A name is that of the whole machine; the port is told by the channel.
        (_, "kubernetes") => any(told.port()),
        _ => any(0),
    })
}

/// Name by which rank 0 reaches this machine.
fn reached_at(launched: &Launched) -> Result<String, Error> {
    if let Some(told) = told_address(launched.rank)? {
        return Ok(if told.host().contains(':') {
            format!("[{}]", told.host())
        } else {
            told.host().to_owned()
        });
    }
    if launched.is_one_machine {
        return Ok("127.0.0.1".to_owned());
    }
    let node = std::env::var("SLURMD_NODENAME").ok().filter(|name| !name.is_empty());
    Ok(node.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned()))
}

fn start(
    addresses: &[String],
    secret: Secret,
    end: &std::sync::mpsc::Sender<String>,
) -> Result<ControlServer, Error> {
    let start = |listen: &String| {
        let agent = ServiceAgent::new(None, None, end.clone());
        ControlServer::start(ControlRequest {
            listen: listen.clone(),
            secret: Some(secret.clone()),
            tls: false,
            agent: Arc::new(agent),
            // Rank 0 tells what becomes of the run.
            log: Arc::new(|_| {}),
        })
    };
    let mut result = start(&addresses[0]);
    for address in &addresses[1..] {
        result = result.or_else(|_| start(address));
    }
    result
}
