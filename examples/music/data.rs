//! A shop of any size, in the proportions of Chinook. It is the same on every run.

pub(crate) struct Album {
    pub(crate) title: String,
    pub(crate) artist: usize,
}

pub(crate) struct Track {
    pub(crate) name: String,
    pub(crate) album: usize,
    pub(crate) genre: usize,
    pub(crate) cents: i64,
}

pub(crate) struct Customer {
    pub(crate) name: String,
    pub(crate) country: &'static str,
}

pub(crate) struct Invoice {
    pub(crate) customer: usize,
    pub(crate) day: String,
    pub(crate) cents: i64,
}

pub(crate) struct Line {
    pub(crate) invoice: usize,
    pub(crate) track: usize,
    pub(crate) cents: i64,
    pub(crate) quantity: i64,
}

/// The rows of each table; a row's place is its id.
#[derive(Default)]
pub(crate) struct Shop {
    pub(crate) artists: Vec<String>,
    pub(crate) albums: Vec<Album>,
    pub(crate) genres: Vec<&'static str>,
    pub(crate) tracks: Vec<Track>,
    pub(crate) customers: Vec<Customer>,
    pub(crate) invoices: Vec<Invoice>,
    pub(crate) lines: Vec<Line>,
}

const ARTISTS: usize = 275;
const ALBUMS: usize = 347;
const CUSTOMERS: usize = 59;
const INVOICES: usize = 412;

const GENRES: [&str; 25] = [
    "Rock",
    "Jazz",
    "Metal",
    "Alternative",
    "Punk",
    "Blues",
    "Latin",
    "Reggae",
    "Pop",
    "Soundtrack",
    "Bossa Nova",
    "Easy Listening",
    "Heavy Metal",
    "Soul",
    "Electronica",
    "World",
    "Hip Hop",
    "Fado",
    "Science Fiction",
    "TV Shows",
    "Samba",
    "Drama",
    "Comedy",
    "Classical",
    "Opera",
];
const COUNTRIES: [&str; 12] = [
    "USA", "Canada", "France", "Brazil", "Germany", "Portugal", "India", "Czechia", "Chile",
    "Norway", "Spain", "Japan",
];
const FIRST: [&str; 20] = [
    "Blue", "Silent", "Broken", "Golden", "Electric", "Midnight", "Paper", "Burning", "Lonely",
    "Velvet", "Distant", "Crystal", "Hollow", "Crimson", "Frozen", "Restless", "Campfire",
    "Secret", "Wild", "Last",
];
const SECOND: [&str; 20] = [
    "river", "train", "heart", "garden", "fire", "shadow", "winter", "road", "mirror", "ocean",
    "letter", "city", "window", "thunder", "season", "island", "engine", "summer", "bridge",
    "dream",
];

impl Shop {
    /// Makes a shop of `scale` times Chinook's rows.
    pub(crate) fn generate(scale: usize) -> Self {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut shop = Self { genres: GENRES.to_vec(), ..Default::default() };
        shop.artists =
            (0..ARTISTS * scale).map(|number| format!("The {} {number}", random.name())).collect();
        shop.customers = (0..CUSTOMERS * scale)
            .map(|number| Customer {
                name: format!("customer {number}"),
                country: random.rare(&COUNTRIES),
            })
            .collect();
        for album in 0..ALBUMS * scale {
            shop.add_album(album, &mut random);
        }
        for invoice in 0..INVOICES * scale {
            let day = invoice * 28 * 60 / (INVOICES * scale);
            shop.add_invoice(invoice, day, &mut random);
        }
        shop
    }

    pub(crate) const fn rows(&self) -> usize {
        self.artists.len()
            + self.albums.len()
            + self.genres.len()
            + self.tracks.len()
            + self.customers.len()
            + self.invoices.len()
            + self.lines.len()
    }

    pub(crate) fn artist_with_most_albums(&self) -> &str {
        let mut albums = vec![0; self.artists.len()];
        self.albums.iter().for_each(|album| albums[album.artist] += 1);
        let most = (0..albums.len()).max_by_key(|artist| albums[*artist]).unwrap_or(0);
        &self.artists[most]
    }

    fn add_album(&mut self, album: usize, random: &mut Random) {
        let artist = random.below(self.artists.len());
        self.albums.push(Album { title: random.name(), artist });
        let genre = random.below(GENRES.len());
        for _ in 0..random.below(19) + 1 {
            let cents = if genre > 20 { 199 } else { 99 };
            self.tracks.push(Track { name: random.name(), album, genre, cents });
        }
    }

    fn add_invoice(&mut self, invoice: usize, day: usize, random: &mut Random) {
        let first = self.lines.len();
        for _ in 0..random.below(10) + 1 {
            let track = random.below(self.tracks.len());
            let cents = self.tracks[track].cents;
            let quantity = if random.below(10) == 0 { 2 } else { 1 };
            self.lines.push(Line { invoice, track, cents, quantity });
        }
        let cents = self.lines[first..].iter().map(|line| line.cents * line.quantity).sum();
        let customer = random.below(self.customers.len());
        let (month, day) = (day / 28, day % 28 + 1);
        let day = format!("{}-{:02}-{day:02}", 2021 + month / 12, month % 12 + 1);
        self.invoices.push(Invoice { customer, day, cents });
    }
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("it is below a usize")
    }

    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len())]
    }

    /// Prefers the first words.
    fn rare(&mut self, words: &[&'static str]) -> &'static str {
        let bound = self.below(words.len()) + 1;
        words[self.below(bound)]
    }

    fn name(&mut self) -> String {
        format!("{} {}", self.one_of(&FIRST), self.one_of(&SECOND))
    }
}
