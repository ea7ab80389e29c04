//! An S3 server in memory, for scripts: prints its port and ends when its standard input does.
//! `s3_server [--port PORT] [--threads N] [--anonymous]`; keys from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY where they are set.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use testkit::s3::{S3Options, S3Server};

fn options() -> Result<S3Options, String> {
    let mut options = S3Options::default();
    if let (Ok(access), Ok(secret)) =
        (std::env::var("AWS_ACCESS_KEY_ID"), std::env::var("AWS_SECRET_ACCESS_KEY"))
    {
        (options.access, options.secret) = (access, secret);
    }
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|text| text.parse::<u16>().ok());
        match word.as_str() {
            "--port" => options.port = number().ok_or("--port takes a number from 0 to 65535")?,
            "--threads" => {
                let threads = number().filter(|&threads| threads > 0);
                options.threads = threads.ok_or("--threads takes a number from 1 to 65535")?.into();
            }
            "--anonymous" => options.is_anonymous = true,
            _ => return Err(format!("{word:?}: accepted are --port PORT, --threads N, --anonymous")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let server =
        match options().and_then(|options| S3Server::start(options).map_err(|error| error.to_string())) {
            Ok(server) => server,
            Err(error) => {
                eprintln!("s3_server: {error}");
                return ExitCode::from(2);
            }
        };
    println!("{}", server.port());
    let told = std::io::stdout().flush();
    let ended = std::io::stdin().lock().read_to_end(&mut Vec::new());
    if told.is_ok() && ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
