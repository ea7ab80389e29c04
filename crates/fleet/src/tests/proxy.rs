//! Somebody in between: relays bytes, cuts or freezes them, or ends TLS with a certificate of his own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::stream::{Identity, connect_tls};

pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    /// Connections that TLS was established on, to both sides.
    pub(super) in_between: Arc<AtomicUsize>,
    is_frozen: Arc<AtomicBool>,
    runtime: Option<Runtime>,
}

impl Proxy {
    /// Relays to `target`; with `identity` as a man in the middle of TLS.
    pub(super) fn start(target: SocketAddr, identity: Option<Identity>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (in_between, is_frozen) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (count, freeze) = (Arc::clone(&in_between), Arc::clone(&is_frozen));
        runtime.spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(target).await.expect("the target listens");
                let (identity, count, freeze) = (identity.clone(), Arc::clone(&count), Arc::clone(&freeze));
                tokio::spawn(async move {
                    match identity {
                        None => relay(near, far, freeze).await,
                        Some(identity) => {
                            let Ok((near, _)) = identity.accept(near).await else { return };
                            let Ok((far, _)) = connect_tls(far).await else { return };
                            count.fetch_add(1, Ordering::Relaxed);
                            relay(near, far, freeze).await;
                        }
                    }
                });
            }
        });
        Self { address, in_between, is_frozen, runtime: Some(runtime) }
    }

    /// Nothing passes any more, and nobody is told.
    pub(super) fn freeze(&self) {
        self.is_frozen.store(true, Ordering::Relaxed);
    }

    /// Closes all connections.
    pub(super) fn cut(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

async fn relay<A, B>(near: A, far: B, is_frozen: Arc<AtomicBool>)
where
    A: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let (near_read, near_write) = tokio::io::split(near);
    let (far_read, far_write) = tokio::io::split(far);
    tokio::select! {
        () = pass(near_read, far_write, &is_frozen) => {}
        () = pass(far_read, near_write, &is_frozen) => {}
    }
}

async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, is_frozen: &AtomicBool) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if !is_frozen.load(Ordering::Relaxed)
            && (to.write_all(&bytes[..count]).await.is_err() || to.flush().await.is_err())
        {
            return;
        }
    }
}
