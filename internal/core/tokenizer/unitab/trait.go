package unitab

// Traits are what Hugging Face tokenizers' normalisers and pre-tokenizers ask of a
// character. They are of three versions of Unicode, each that of the library which
// answers there.
const (
	punctuation8 = 1 << iota // P, in Unicode 8.0 (unicode_categories)
	other8                   // Cc, Cf, Co, likewise
	nonspacing8              // Mn, likewise
	mark9                    // M, in Unicode 9.0 (unicode-normalization-alignments)
	numeric17                // N, in Unicode 17.0 (Rust's standard library)
)

func has(r rune, trait uint8) bool { return traitPages[traitIndex[r>>7]][r&127]&trait != 0 }

// IsPunctuation reports whether Punctuation and BertPreTokenizer cut at a character:
// punctuation of Unicode 8.0, or ASCII that is no letter, number, space or control.
func IsPunctuation(r rune) bool {
	if r < 0x80 {
		return ASCII(byte(r))&(Punct|Symbol) != 0
	}
	return has(r, punctuation8)
}

// IsOther reports whether a character is of category Cc, Cf or Co in Unicode 8.0.
func IsOther(r rune) bool { return has(r, other8) }

// IsNonspacing reports whether a character is of category Mn in Unicode 8.0.
func IsNonspacing(r rune) bool { return has(r, nonspacing8) }

// IsMark reports whether a character is of category M in Unicode 9.0.
func IsMark(r rune) bool { return has(r, mark9) }

// IsNumeric reports whether a character is of category N in Unicode 17.0.
func IsNumeric(r rune) bool { return has(r, numeric17) }

// Script numbers the script of a character in Unicode 9.0, as the pre-tokenizer
// UnicodeScripts has it: the scripts of Japanese are one, and 0 stands for what is not
// assigned and for a blank, which go with any.
func Script(r rune) uint8 { return scriptPages[scriptIndex[r>>7]][r&127] }
