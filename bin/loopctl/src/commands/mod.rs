//! What the commands do: one file each.

mod agent;
mod answer;
mod ask;
mod cancel;
mod diff;
mod doctor;
mod exchange;
mod list;
mod models;
mod record;
mod replay;
mod resume;
mod scaffold;
mod scan;
mod show;
mod start;
mod store;
mod upgrade;
mod verify;
mod watch;
mod why;

use crate::cli::{
    ActorCommand, AgentCommand, AskCommand, CallCommand, Command, ConvCommand, FixtureCommand, ModelsCommand,
    OperatorCommand, RunArgs, RunCommand, StoreCommand, TokenCommand,
};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::server;

pub use answer::{resolution, typed, typed_answer};
pub use list::{painted, plain_table, text as table_text};
pub use start::TENANT;

/// Does what was asked.
///
/// # Errors
/// [`Problem`]: what, why and how to fix.
pub async fn run(command: Command, context: &Context) -> Result<Exit, Problem> {
    match command {
        Command::Run(args) => run_command(*args, context).await,
        Command::Ask(args) => ask::ask(context, args).await,
        Command::Conv(args) => server::conv(context, *args).await,
        Command::Actor(args) => server::actor(context, args).await,
        Command::Call(args) => server::call(context, *args).await,
        Command::Token(args) => server::token(context, args).await,
        Command::Record(args) => record::record(context, args).await,
        Command::Verify(args) => verify::verify(context, args).await,
        Command::Replay(args) => replay::replay(context, &args),
        Command::Diff(args) => diff::diff(context, args).await,
        Command::Show(args) => show::fixture(context, &args),
        Command::Fixture(FixtureCommand::Scan { files, format }) => scan::scan(&files, format.format),
        Command::Store(StoreCommand::Verify(format)) => verify::store(context, format.format).await,
        Command::Store(StoreCommand::Backup { to }) => store::backup(context, &to).await,
        Command::Agent(AgentCommand::Check { file, format }) => agent::check(context, &file, format.format),
        Command::Agent(AgentCommand::Converse(args)) => crate::chat::chat(context, *args).await,
        Command::Agent(AgentCommand::Schema) => agent::schema(),
        Command::Agent(AgentCommand::List(args)) => server::agents::list(context, args).await,
        Command::Agent(AgentCommand::Apply(args)) => server::agents::apply(context, args).await,
        Command::Agent(AgentCommand::Delete(args)) => server::agents::delete(context, args).await,
        Command::Operator(OperatorCommand::New(args)) => scaffold::new(&args),
        Command::Models(args) => models::models(context, &args),
        Command::Upgrade(args) => upgrade::upgrade(context, &args).await,
        Command::Doctor(format) => doctor::doctor(context, format.format).await,
        Command::Completions { shell } => completions(shell),
    }
}

/// How errors of this command are to be written.
pub fn format(command: &Command) -> Format {
    let args = match command {
        Command::Run(args) => match &args.command {
            None => args.options.format,
            Some(RunCommand::Start(args)) => args.options.format,
            Some(RunCommand::List(args)) => args.format,
            Some(RunCommand::Show(args)) => args.format,
            Some(RunCommand::Watch(args)) => args.format,
            Some(RunCommand::Why(args)) => args.format,
            Some(RunCommand::Resume(args)) => args.format,
            Some(RunCommand::Cancel(args)) => args.format,
            Some(RunCommand::Exchange(_)) => return Format::Table,
        },
        Command::Conv(args) => return conv_format(&args.command),
        Command::Ask(args) => match &args.command {
            AskCommand::List { format, .. } | AskCommand::Show { format, .. } => *format,
            AskCommand::Answer(_) => return Format::Table,
        },
        Command::Actor(args) => match &args.command {
            ActorCommand::List { format, .. } | ActorCommand::Show { format, .. } => *format,
        },
        Command::Call(args) => match &args.command {
            CallCommand::List { format, .. }
            | CallCommand::Show { format, .. }
            | CallCommand::Cancel { format, .. }
            | CallCommand::Steer { format, .. }
            | CallCommand::Resume { format, .. }
            | CallCommand::Targets(format) => *format,
            CallCommand::Start(args) => args.format,
        },
        Command::Token(args) => match &args.command {
            TokenCommand::Create(args) => args.format,
            TokenCommand::List(format) | TokenCommand::Revoke { format, .. } => *format,
        },
        Command::Fixture(FixtureCommand::Scan { format, .. })
        | Command::Store(StoreCommand::Verify(format))
        | Command::Agent(AgentCommand::Check { format, .. })
        | Command::Doctor(format) => *format,
        Command::Agent(AgentCommand::List(args)) => args.format,
        Command::Agent(AgentCommand::Apply(args)) => args.format,
        Command::Operator(OperatorCommand::New(args)) => args.format,
        Command::Verify(args) => args.format,
        Command::Replay(args) => args.format,
        Command::Diff(args) => args.format,
        Command::Upgrade(args) => args.format,
        Command::Models(args) => match &args.command {
            None => args.format,
            Some(ModelsCommand::Show(args)) => args.format,
        },
        Command::Show(args) => args.format,
        Command::Record(_)
        | Command::Store(StoreCommand::Backup { .. })
        | Command::Agent(AgentCommand::Schema | AgentCommand::Converse(_) | AgentCommand::Delete(_))
        | Command::Completions { .. } => return Format::Table,
    };
    args.format
}

const fn conv_format(command: &ConvCommand) -> Format {
    match command {
        ConvCommand::New { format, .. }
        | ConvCommand::List { format, .. }
        | ConvCommand::Show { format, .. }
        | ConvCommand::Rename { format, .. }
        | ConvCommand::Archive { format, .. }
        | ConvCommand::Members { format, .. }
        | ConvCommand::Search { format, .. } => format.format,
        ConvCommand::Send(args) => args.format.format,
        ConvCommand::Watch(args) => args.format.format,
        ConvCommand::Export { .. } | ConvCommand::Delete { .. } => Format::Table,
    }
}

async fn run_command(args: RunArgs, context: &Context) -> Result<Exit, Problem> {
    match args.command {
        Some(RunCommand::Start(args)) => start::start(context, &args.file, args.options).await,
        Some(RunCommand::List(args)) => list::list(context, args).await,
        Some(RunCommand::Show(args)) => show::run(context, args).await,
        Some(RunCommand::Watch(args)) => watch::watch(context, args).await,
        Some(RunCommand::Why(args)) => why::why(context, args).await,
        Some(RunCommand::Resume(args)) => resume::resume(context, args).await,
        Some(RunCommand::Cancel(args)) => cancel::cancel(context, args).await,
        Some(RunCommand::Exchange(args)) => exchange::exchange(context, args).await,
        None => match args.file {
            Some(file) if is_file(&file.to_string_lossy()) => start::start(context, &file, args.options).await,
            Some(file) => Err(no_command(&file.to_string_lossy())),
            None => Err(Problem::new(Code::Usage, "`loopctl run` needs a command or a manifest")
                .fix("loopctl run agent.yaml \"a question\"  or  loopctl run --help")),
        },
    }
}

/// A word that is meant as a file holds a `/` or a `.`; anything else was meant as a command.
fn is_file(word: &str) -> bool {
    word.contains(['/', '.'])
}

fn no_command(word: &str) -> Problem {
    let word = loopd_fixture::excerpt::line(word, 60);
    let problem = Problem::new(Code::Usage, format!("`{word}` is no command of `loopctl run`"))
        .why("a manifest is told from a command by a `/` or a `.` in its name");
    problem
        .fix(format!("loopctl run --help  lists the commands;  loopctl run ./{word}  starts a manifest of that name"))
}

fn completions(shell: clap_complete::Shell) -> Result<Exit, Problem> {
    let mut script = Vec::new();
    let mut command = <crate::cli::Cli as clap::CommandFactory>::command();
    clap_complete::generate(shell, &mut command, "loopctl", &mut script);
    output::bytes(&script)?;
    Ok(Exit::Completed)
}
