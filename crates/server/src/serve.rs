//! Connections: accepted, limited, and drained at the end.

use crate::Server;
use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long accepting rests after the system refused, for example because no file handle was free.
const REST: Duration = Duration::from_millis(100);
/// The smallest buffer that a connection may have.
const LEAST_BUFFER: usize = 8192;

/// The address that a request came from: an extension of it. Proxies are taken for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

impl Server {
    /// Serves connections until `shutdown` is there, then drains: `/readyz` says no, nothing new is accepted, streams end
    /// (their clients resume elsewhere or later), the engine lets go of what runs, and requests that are under way finish
    /// within the grace.
    ///
    /// # Errors
    /// None at present: what fails on one connection ends that one.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()> + Send) -> io::Result<()> {
        let served = Connections::new(self);
        let stopped = async {
            shutdown.await;
            self.unready();
        };
        tokio::select! {
            () = stopped => {}
            () = served.accept(&listener) => {}
        }
        drop(listener);
        self.app.ending.cancel();
        let Connections { tasks, finish, cut, .. } = served;
        finish.cancel();
        tasks.close();
        let grace = async {
            if tokio::time::timeout(self.app.limits().grace, tasks.wait()).await.is_err() {
                tracing::warn!(left = tasks.len(), "requests were cut off: the grace is over");
                cut.cancel();
                tasks.wait().await;
            }
        };
        tokio::join!(self.app.engine.drain(), grace);
        Ok(())
    }
}

struct Connections {
    http: http1::Builder,
    router: Router,
    room: Arc<Semaphore>,
    tasks: TaskTracker,
    /// No connection takes another request.
    finish: CancellationToken,
    /// Every connection ends.
    cut: CancellationToken,
}

impl Connections {
    fn new(server: &Server) -> Self {
        let limits = server.app.limits();
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.head_timeout)
            // Up to twice the limit a request gets a refusal that says why; beyond it the connection answers by itself.
            .max_headers(limits.headers.saturating_mul(2))
            .max_buf_size(limits.header_bytes.saturating_mul(2).max(LEAST_BUFFER));
        Self {
            http,
            router: server.router(),
            room: Arc::new(Semaphore::new(limits.connections.clamp(1, Semaphore::MAX_PERMITS))),
            tasks: TaskTracker::new(),
            finish: CancellationToken::new(),
            cut: CancellationToken::new(),
        }
    }

    async fn accept(&self, listener: &TcpListener) {
        loop {
            // Nobody closes it.
            let Ok(place) = Arc::clone(&self.room).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, address)) => self.spawn(stream, Peer(address.ip()), place),
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }

    fn spawn(&self, stream: TcpStream, peer: Peer, place: OwnedSemaphorePermit) {
        // Without it small events wait for each other; where it is refused they only come later.
        let _ = stream.set_nodelay(true);
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            router.call(request)
        });
        let connection = self.http.serve_connection(TokioIo::new(stream), service);
        let (finish, cut) = (self.finish.clone(), self.cut.clone());
        self.tasks.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let finished = tokio::select! {
                ended = connection.as_mut() => Some(ended),
                () = finish.cancelled() => None,
            };
            let ended = match finished {
                Some(ended) => ended,
                None => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = connection => ended,
                        () = cut.cancelled() => Ok(()),
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection broke off");
            }
            drop(place);
        });
    }
}
