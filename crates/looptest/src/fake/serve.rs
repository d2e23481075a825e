//! Connections.

use super::answer::Content;
use super::journal::Wire;
use super::plan::{Act, plan};
use super::refusal::Refusal;
use super::send::{Acts, Broken, pause};
use super::service::{Reply, Service};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The largest request.
const LARGEST: usize = 64 << 20;

/// Takes connections until nobody wants the server any more. Its connections end with it.
pub(super) async fn accept(listener: TcpListener, service: Arc<Service>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Out of descriptors, or a client that was gone before it was there: the next one may fare better.
                let Ok((stream, _)) = accepted else {
                    tokio::task::yield_now().await;
                    continue;
                };
                // Without it, small packets wait for each other.
                let _ = stream.set_nodelay(true);
                let service = service.clone();
                connections.spawn(async move {
                    let answer = service_fn(move |request| handle(service.clone(), request));
                    // A broken connection is the client's business, or what the script wants.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn handle(service: Arc<Service>, request: Request<Incoming>) -> Result<Response<Acts>, Broken> {
    let (head, body) = request.into_parts();
    let reply = match Limited::new(body, LARGEST).collect().await {
        Ok(body) => service.answer(&head, &body.to_bytes()),
        Err(_) => too_large(),
    };
    let plan = plan(reply.content.clone(), &reply.way);
    for act in plan.before {
        match act {
            Act::Pause(ms) => pause(ms).await,
            Act::Wait(gate) => service.gates().pass(&gate).await,
            Act::Break => return Err(Broken),
            Act::Send(_) => {}
        }
    }
    let mut response = Response::new(Acts::new(service, plan.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let kind = match reply.content {
        Content::Whole(_) | Content::List(_) => "application/json",
        Content::Events(_) => "text/event-stream; charset=utf-8",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    for name in ["x-request-id", "request-id"] {
        headers.insert(name, HeaderValue::from_static("req_fake"));
    }
    if let Some(length) = plan.length {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    for (name, value) in &reply.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    Ok(response)
}

fn too_large() -> Reply {
    let refusal = Refusal::new(413, "Request exceeds the maximum size");
    let content = Content::Whole(refusal.body(Wire::Completions).to_string());
    Reply { status: 413, headers: Vec::new(), content, way: super::plan::Way::default() }
}
