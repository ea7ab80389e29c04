//! A server in this process with an empty bucket.

use object::plan::S3Key;
use testkit::s3::{S3Options, S3Server};

use super::{Harness, Stand};

const BUCKET: &str = "bench-1";

pub(super) struct S3;

impl Harness for S3 {
    fn name(&self) -> &'static str {
        "s3"
    }

    fn driver(&self) -> &'static str {
        "s3"
    }

    fn start(&self) -> Result<Stand, String> {
        let keys = S3Options::default();
        let server = S3Server::start(keys.clone()).map_err(|error| format!("an S3 server: {error}"))?;
        server.store().create_bucket(BUCKET);
        let endpoint = server.endpoint();
        let mut stand = Stand::new(format!("s3://{BUCKET}"), server);
        (stand.options.s3_endpoints, stand.options.s3_region) = (vec![endpoint], keys.region.clone());
        stand.s3_key = Some(S3Key { access: keys.access, secret: keys.secret });
        Ok(stand)
    }
}
