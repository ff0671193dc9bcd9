//! How the generator of a namespace is built, as the configuration says.
//!
//! What the files of a namespace say when it is opened counts for as long as the server runs,
//! whatever they say later. One that can't be opened keeps the server from starting.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringflake::lease::{self, Fingerprint, OpenOptions, StoreError};
use ringflake::local::DataDir;
use ringflake::{
    BuildCheck, BuildError, CachedGenerator, CachedGeneratorBuilder, Layout, LeaseStore, Local,
    LocalError, Secret, SecretError,
};

use crate::config::{Config, NamespaceSettings, StoreUrl};
use crate::lock::lock;
use crate::log_limit::LogLimit;
use crate::namespaces::OpenError;
use crate::wording::{Causes, Target, help_of_store};

/// How long the start waits for a store unless the configuration says otherwise.
const WAIT: Duration = Duration::from_secs(5);

pub(crate) struct GeneratorFactory {
    config: Arc<Config>,
    /// The secrets that are used with stores, and the namespace of each.
    secrets: Mutex<Vec<(Fingerprint, String)>>,
    waits: Arc<LogLimit>,
}

/// The store of a namespace.
struct Upstream {
    /// As the configuration names it.
    named: StoreUrl,
    /// The same, behind its tier if there is one.
    url: StoreUrl,
    /// None where IDs are plain.
    secret: Option<Secret>,
}

impl GeneratorFactory {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            secrets: Mutex::default(),
            waits: Arc::default(),
        }
    }

    /// What all namespaces of the data directory share.
    pub(crate) fn all_local(&self) -> Local {
        self.in_data_dir(Local::of_layout(None))
    }

    /// The data directory, which need not exist.
    pub(crate) fn data_dir(&self) -> Result<PathBuf, LocalError> {
        match &self.config.data_dir {
            Some(path) => Ok(path.clone()),
            None => Ok(DataDir::of_this_user()?.path().to_owned()),
        }
    }

    /// The generator of this namespace. Waits for a store as long as the configuration
    /// says, and then goes on without a lease, which comes once the store is back.
    pub(crate) fn build(&self, name: &str) -> Result<CachedGenerator, OpenError> {
        let (settings, layout) = self.settings(name)?;
        let upstream = self.upstream(name, &settings)?;
        let target = || self.target(name, &settings, upstream.as_ref());
        let refused = |error| OpenError::of_build(error, &target());
        let Some(upstream) = &upstream else {
            let builder = self.local(name, &settings, layout);
            return builder.build().map_err(refused);
        };
        let builder = || self.shared(name, &settings, layout, upstream);
        let wait = settings.wait.unwrap_or(WAIT);
        let data_dir = DataDir::new(self.data_dir().map_err(local)?);
        // It must not make IDs elsewhere.
        if let Some(secret) = &upstream.secret {
            beside(&data_dir, |directory| directory.refuse_used(secret))?;
        }
        let generator = match builder()?.first_lease_within(wait).build() {
            // Of a lease whose grant is not known, a block lies idle until its end.
            Err(
                BuildError::NoLeaseYet { error, .. }
                | BuildError::Store(error @ StoreError::Ambiguous { .. }),
            ) => {
                tracing::warn!(
                    namespace = name,
                    error = %Causes(&error),
                    help = help_of_store(&error, Some(&target())),
                    "no lease yet: the server starts without one and keeps trying"
                );
                builder()?.build_detached()
            }
            outcome => outcome,
        }
        .map_err(refused)?;
        if let Some(secret) = &upstream.secret {
            beside(&data_dir, |directory| directory.give_away(secret))?;
        }
        Ok(generator)
    }

    /// What [`build`](Self::build) would do.
    pub(crate) fn check(&self, name: &str) -> Result<BuildCheck, OpenError> {
        let (settings, layout) = self.settings(name)?;
        let upstream = self.upstream(name, &settings)?;
        let builder = match &upstream {
            Some(upstream) => self.shared(name, &settings, layout, upstream)?,
            None => self.local(name, &settings, layout),
        };
        builder.check().map_err(|error| {
            OpenError::of_build(error, &self.target(name, &settings, upstream.as_ref()))
        })
    }

    fn target(
        &self,
        name: &str,
        settings: &NamespaceSettings,
        upstream: Option<&Upstream>,
    ) -> Target {
        let url = upstream.map(|upstream| &upstream.named);
        Target::new(name, settings, url, self.data_dir().ok().as_deref())
    }

    /// Refuses a name that clients may not begin. Reads no file and asks no store.
    pub(crate) fn admit(&self, name: &str) -> Result<(), OpenError> {
        match self.config.namespaces.contains_key(name) {
            true => Ok(()),
            false => self.check(name).map(drop),
        }
    }

    fn settings(&self, name: &str) -> Result<(NamespaceSettings, Layout), OpenError> {
        let settings = match self.config.namespaces.get(name) {
            Some(settings) => settings.clone(),
            None if self.config.may_begin(name) => NamespaceSettings::default(),
            None => return Err(OpenError::Unknown),
        };
        let layout = settings.layout.unwrap_or(Layout::RANDFLAKE);
        lease::Namespace::new(name, &layout, Fingerprint::PLAIN).map_err(OpenError::Name)?;
        Ok((settings, layout))
    }

    fn open_store(&self, url: &StoreUrl) -> Result<Box<dyn LeaseStore>, OpenError> {
        let options = OpenOptions::new().accept_best_effort(self.config.best_effort);
        let store = lease::open(url.expose(), &options);
        store.map_err(|error| OpenError::Store(Arc::new(error)))
    }

    /// A namespace of the data directory.
    fn local(
        &self,
        name: &str,
        settings: &NamespaceSettings,
        layout: Layout,
    ) -> CachedGeneratorBuilder {
        let builder = with_settings(CachedGenerator::builder(layout), settings);
        let namespace = name.to_owned();
        let local = self.in_data_dir(Local::new(name));
        let waits = Arc::clone(&self.waits);
        builder.local(local).on_lease_wait_hook(move |error| {
            // All namespaces wait for the same directory.
            if let Some(suppressed) = waits.permit("data directory") {
                let error = Causes(error);
                tracing::warn!(namespace, %error, suppressed, "waiting for the data directory");
            }
        })
    }

    /// A namespace of a store, which is not asked yet.
    fn shared(
        &self,
        name: &str,
        settings: &NamespaceSettings,
        layout: Layout,
        upstream: &Upstream,
    ) -> Result<CachedGeneratorBuilder, OpenError> {
        let builder = with_settings(CachedGenerator::builder(layout), settings);
        let store = self.open_store(&upstream.url)?;
        let mut builder = builder.namespace(name).lease_store(store);
        if let Some(bits) = settings.block_bits {
            builder = builder.block_bits(bits);
        }
        if let Some(history) = settings.init_if_new {
            builder = builder.init_if_new(history);
        }
        if let Some(secret) = &upstream.secret {
            builder = builder.secret(secret);
        }
        Ok(builder)
    }

    /// The store of this namespace, if it is not the data directory.
    fn upstream(
        &self,
        name: &str,
        settings: &NamespaceSettings,
    ) -> Result<Option<Upstream>, OpenError> {
        let named = match (&settings.store, &settings.store_url_file) {
            (Some(url), _) => url.clone(),
            (None, Some(path)) => read_url(path)?,
            (None, None) => return Ok(None),
        };
        let url = match settings.tier {
            Some(true) => self.behind_tier(name, &named)?,
            _ => named.clone(),
        };
        let secret = secret_of(settings)?;
        if let Some(secret) = &secret {
            self.refuse_shared(name, secret)?;
        }
        Ok(Some(Upstream { named, url, secret }))
    }

    /// Refuses a secret that another namespace has. A store refuses that itself, but does not see
    /// another store.
    fn refuse_shared(&self, name: &str, secret: &Secret) -> Result<(), OpenError> {
        let fingerprint = Fingerprint::of(secret);
        let mut secrets = lock(&self.secrets);
        match secrets.iter().find(|(used, _)| *used == fingerprint) {
            Some((_, other)) if other != name => Err(OpenError::SharedSecret {
                other: other.clone(),
            }),
            Some(_) => Ok(()),
            None => {
                secrets.push((fingerprint, name.to_owned()));
                Ok(())
            }
        }
    }

    fn behind_tier(&self, name: &str, url: &StoreUrl) -> Result<StoreUrl, OpenError> {
        let file = self.data_dir().map_err(local)?;
        let file = file.join(format!("{name}.tier.db"));
        let url = format!("tier:{}?upstream={}", file.display(), url.expose());
        Ok(StoreUrl::new(url))
    }

    fn in_data_dir(&self, local: Local) -> Local {
        let local = local.accept_best_effort(self.config.best_effort);
        match &self.config.data_dir {
            Some(path) => local.in_directory(path),
            None => local,
        }
    }
}

/// The secret of a namespace whose leases come from a store.
fn secret_of(settings: &NamespaceSettings) -> Result<Option<Secret>, OpenError> {
    let read = |path: &Path| {
        // As for tokens: nobody else may read it.
        if let Err(source) = lease::read_private_file(path) {
            let path = path.to_owned();
            return Err(SecretError::FileUnreadable { path, source });
        }
        Secret::from_file(path)
    };
    let secret = settings.secret_file.as_deref().map(read).transpose();
    secret.map_err(|error| OpenError::Secret(Arc::new(error)))
}

fn local(error: LocalError) -> OpenError {
    OpenError::Local(Arc::new(error))
}

/// Applies the settings that a namespace of either kind may have.
fn with_settings(
    mut builder: CachedGeneratorBuilder,
    settings: &NamespaceSettings,
) -> CachedGeneratorBuilder {
    macro_rules! give {
        ($($option:ident),*) => { $(
            if let Some(value) = settings.$option {
                builder = builder.$option(value);
            }
        )* };
    }
    give!(
        id_width,
        blocks,
        widen_to,
        lease_duration,
        capacity,
        stripes,
        producers,
        borrow_limit
    );
    match settings.plain {
        Some(true) => builder.plain(),
        _ => builder,
    }
}

/// The URL in a file that nobody else may read. A path in it is relative to that file.
fn read_url(path: &Path) -> Result<StoreUrl, OpenError> {
    let read = lease::read_private_file(path).and_then(|contents| {
        let text = std::str::from_utf8(&contents)
            .map_err(|_| std::io::Error::other("it is to hold a URL, and is no text"))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        Ok(StoreUrl::new(text.trim()).in_directory(directory))
    });
    read.map_err(|error| OpenError::UrlFile {
        path: path.to_owned(),
        source: Arc::new(error),
    })
}

/// Does something about the data directory that has to do with a secret of a store.
fn beside(
    directory: &DataDir,
    work: impl FnOnce(&DataDir) -> Result<(), LocalError>,
) -> Result<(), OpenError> {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match work(directory) {
        // This user makes no IDs there.
        Err(LocalError::Directory { source, .. })
            if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem) =>
        {
            Ok(())
        }
        outcome => outcome.map_err(local),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use crate::config::Settings;

    /// With a namespace whose leases come from a store, and whose secret is a file of the data
    /// directory.
    fn factory(home: &Path) -> GeneratorFactory {
        let text = "
            data-dir = 'data'
            best-effort = true
            on-demand = true
            [namespaces.shared]
            store = 'sqlite:leases.db'
            secret-file = 'data/orders.secret'
            init-if-new = 'new'
            block-bits = 3
            ";
        let settings = Settings::from_toml(text, &home.join("serve.toml")).unwrap();
        GeneratorFactory::new(Arc::new(Config::new(settings).unwrap()))
    }

    #[test]
    fn a_secret_of_the_data_directory_is_not_used_with_a_store() {
        let home = tempfile::tempdir().unwrap();
        let factory = factory(home.path());
        // It is drawn, and IDs are made with it.
        factory.build("orders").unwrap().take().unwrap();
        let error = factory.build("shared").unwrap_err();
        assert!(matches!(error, OpenError::Local(_)), "{error:?}");
        assert!(error.to_string().contains("orders"), "{error}");
        assert!(!home.path().join("leases.db").exists(), "nothing is made");
    }

    #[test]
    fn a_secret_that_a_store_was_given_makes_no_ids_in_the_data_directory() {
        let home = tempfile::tempdir().unwrap();
        let factory = factory(home.path());
        // It is drawn, and no ID is made with it.
        let data = DataDir::new(home.path().join("data"));
        let (secret, _) = data.keep_secret().unwrap();
        std::fs::copy(secret, data.secret_of("orders")).unwrap();
        let shared = factory.build("shared").unwrap();
        assert_eq!(shared.leases()[0].nodes().count(), 8);
        assert!(home.path().join("leases.db").exists());
        let error = factory.build("orders").unwrap_err();
        assert!(matches!(error, OpenError::Build { .. }), "{error:?}");
        let help = error.help().unwrap();
        assert!(help.contains("--namespace orders'"), "{help}");
    }

    #[test]
    fn a_secret_that_others_may_read_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("data/orders.secret");
        std::fs::create_dir(home.path().join("data")).unwrap();
        std::fs::write(&file, "00112233445566778899aabbccddeeff").unwrap();
        // Root's may be read by others, but not written.
        let modes = match std::fs::metadata(&file).unwrap().uid() {
            0 => [(0o660, "go-wx"), (0o646, "go-wx")],
            _ => [(0o640, "600"), (0o644, "600")],
        };
        for (mode, change) in modes {
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let error = factory(home.path()).build("shared").unwrap_err();
            assert!(matches!(error, OpenError::Secret(_)), "{error:?}");
            let (said, advice) = (Causes(&error), format!("chmod {change} {}", file.display()));
            assert!(said.to_string().contains(&advice), "{mode:o}: {said}");
        }
    }

    #[test]
    fn a_path_in_a_file_with_a_url_is_relative_to_that_file() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("store.url");
        std::fs::write(&file, "sqlite:leases.db\n").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let url = read_url(&file).unwrap();
        let meant = home.path().join("leases.db");
        assert_eq!(url.expose(), format!("sqlite:{}", meant.display()));
    }

    #[test]
    fn a_data_directory_that_is_somebody_elses_is_no_obstacle() {
        let directory = DataDir::new("somewhere");
        let met = |kind: ErrorKind| {
            let path = directory.path().to_owned();
            let source = io::Error::from(kind);
            beside(&directory, |_| Err(LocalError::Directory { path, source }))
        };
        met(ErrorKind::PermissionDenied).unwrap();
        met(ErrorKind::ReadOnlyFilesystem).unwrap();
        met(ErrorKind::StorageFull).unwrap_err();
        beside(&directory, |_| Ok(())).unwrap();
        beside(&directory, |_| Err(LocalError::NoHome)).unwrap_err();
    }

    #[test]
    fn a_name_that_no_namespace_can_have_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let error = factory(home.path()).check("Orders").unwrap_err();
        assert!(matches!(error, OpenError::Name(_)), "{error:?}");
    }
}
