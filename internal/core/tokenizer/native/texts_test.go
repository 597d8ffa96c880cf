package native_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

// alphabets are ranges of characters that random words are made of.
var alphabets = [][2]rune{
	{0x20, 0x7E}, {0x00, 0x1F}, {0x7F, 0xFF}, {0x100, 0x24F}, {0x250, 0x36F}, {0x370, 0x3FF}, {0x400, 0x52F}, {0x530, 0x5FF},
	{0x600, 0x6FF}, {0x700, 0x8FF}, {0x900, 0xDFF}, {0xE00, 0xEFF}, {0xF00, 0x10FF}, {0x1100, 0x11FF}, {0x1200, 0x17FF},
	{0x1800, 0x1AFF}, {0x1B00, 0x1DFF}, {0x1E00, 0x1FFF}, {0x2000, 0x20FF}, {0x2100, 0x2BFF}, {0x2C00, 0x2FFF}, {0x3000, 0x303F},
	{0x3040, 0x30FF}, {0x3100, 0x33FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xA000, 0xABFF}, {0xAC00, 0xD7FF}, {0xE000, 0xF8FF},
	{0xF900, 0xFAFF}, {0xFB00, 0xFFFF}, {0x10000, 0x107FF}, {0x10800, 0x10FFF}, {0x11000, 0x11FFF}, {0x12000, 0x1CFFF},
	{0x1D000, 0x1D7FF}, {0x1E000, 0x1EFFF}, {0x1F000, 0x1FAFF}, {0x20000, 0x2FA1F}, {0xE0000, 0xE01EF}, {0x10F000, 0x10FFFF},
}

// common are characters that texts are full of, in which merges happen.
const (
	hanzi    = "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实"
	hangul   = "이그저것수있는하다에의을를가한국사람은로서도말나"
	kana     = "のにはをたがでてとしれさあいるもなかっすりつラーメンカタ"
	cyrillic = "оеаинтсрвлкмдпуяыьгзбчйхжшю"
	arabic   = "اليوم هذا الكتاب من في على أن كان"
	thai     = "การที่ของและใน"
	marks    = "\u0300\u0301\u0302\u0308\u0323\u0327\u0338\u093c\u094d\u0e31\u0e49\u3099\u309a\u0898\u1ac1\u20d0\u0345\u05b0\u064e\U0001d165"
)

// pieces are strings at which the rules part.
var pieces = []string{
	"'s", "'S", "'ſ", "'ll", "'lL", "'LL", "'re", "'ve", "'d", "'m", "'t", "'", "''", "’s", "x's's", "'\u212a",
	" ", "  ", "\t", "\n", "\r\n", "\n\n", "\n \n", " \n", "\n ", "\r", "\u00a0", "\u2028", "\u3000", "\u0085", "\u200b", "\ufeff", "\u2581", " \u2581",
	"1", "12", "123", "1234", "½", "Ⅻ", "²", "٣", "𝟘", "〇", ".", ",", "(", ")", "/", "//", "\n/", "=", "==", "_", "-", "<", "<|", "|>", "¿", "€", "“", "”", "…", "，", "。", "、", "・", "ー", "々", "⺀",
	"😀", "👩‍🚀", "🇫🇷", "👍🏽", "✈️", "the", " the", "The", "THE", " of", "ing", "function", "self.", "return ", "    ", "\t\t", "});", "<div>", "</", "http://", "::", "->",
	"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<s>", "</s>", "<unk>", "<bos>", "<0x41>", "[INST]", "[/INST]", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<|im_end", "< |im_end| >", "<|eot_id|>", "<tool_call>", "<pad>", "[REFERENCE_DOC_0]", "[REFERENCE_DOC_19]",
}

// emoji are what sequences of them are made of: signs, joiners, tones of skin, tags, flags.
const emoji = "😀👩👨👧🚀💻❤👍✈☎#1\u200d\u200d\ufe0f\ufe0f\ufe0e🏽🏿🇫🇷🇩\u20e3🏴\U000e0067\U000e0062\U000e007f"

// writer makes random texts.
type writer struct {
	*rand.Rand
	b        strings.Builder
	specials []string // tokens of a vocabulary, to be written whole and nearly so
}

func newWriter(seed uint64) *writer { return &writer{Rand: rand.New(rand.NewPCG(seed, 16))} }

// text is about n characters, and whatever a file may hold: words of one script,
// mixed ones, marks, controls, runs, special tokens.
func (w *writer) text(n int) string {
	w.b.Reset()
	for w.b.Len() < n {
		switch w.IntN(19) {
		case 0:
			w.one(alphabets[w.IntN(len(alphabets))])
		case 1:
			a := alphabets[w.IntN(len(alphabets))]
			for range 1 + w.IntN(12) {
				w.one(a)
			}
		case 2:
			w.from(marks, 1+w.IntN(4))
		case 3:
			s := pieces[w.IntN(len(pieces))]
			w.b.WriteString(strings.Repeat(s, 1+w.IntN(70)*w.IntN(2)))
		case 4:
			w.from(hanzi, 1+w.IntN(60))
		case 5:
			w.from([]string{hangul, kana, cyrillic, arabic, thai}[w.IntN(5)], 1+w.IntN(20))
		case 6, 7, 8:
			w.letters("etaoinshrdlucmfwypvbgkqjxz", 1+w.IntN(10))
			w.b.WriteString([]string{" ", "", "'s ", ", ", ".\n"}[w.IntN(5)])
		case 9:
			w.letters("abcXYZ019 .,'/\n\t(_\"{}=", 1+w.IntN(130))
		case 10:
			w.letters(" \n\r\t", 1+w.IntN(6))
		case 11:
			w.b.WriteByte(byte(w.IntN(0x80)))
		case 12:
			w.special()
		case 13:
			w.from(emoji, 1+w.IntN(8))
		case 14:
			if w.IntN(20) == 0 {
				w.run(1 + w.IntN(3000))
			}
		default:
			w.b.WriteString(pieces[w.IntN(len(pieces))])
		}
	}
	return w.b.String()
}

// special writes a token's text: as it is, in a row, in other case, without a character,
// with one more in it, or with a mark behind that a normaliser takes into it.
func (w *writer) special() {
	if len(w.specials) == 0 {
		return
	}
	s := w.specials[w.IntN(len(w.specials))]
	list := []rune(s)
	at := w.IntN(len(list))
	switch w.IntN(8) {
	case 0:
		s = strings.Repeat(s, 1+w.IntN(40))
	case 1:
		s = strings.ToUpper(s)
	case 2:
		s = string(slices.Delete(list, at, at+1))
	case 3:
		s = string(slices.Insert(list, at, ' '))
	case 4:
		s += "\u0338"
	case 5:
		s = " " + s + " "
	}
	w.b.WriteString(s)
}

// run writes one character of any script again and again.
func (w *writer) run(n int) {
	a := alphabets[w.IntN(len(alphabets))]
	if r := a[0] + rune(w.IntN(int(a[1]-a[0])+1)); utf8.ValidRune(r) {
		w.b.WriteString(strings.Repeat(string(r), n))
	}
}

func (w *writer) one(a [2]rune) {
	r := a[0] + rune(w.IntN(int(a[1]-a[0])+1))
	if utf8.ValidRune(r) {
		w.b.WriteRune(r)
	}
}

func (w *writer) from(set string, n int) {
	list := []rune(set)
	for range n {
		w.b.WriteRune(list[w.IntN(len(list))])
	}
}

func (w *writer) letters(set string, n int) {
	for range n {
		w.b.WriteByte(set[w.IntN(len(set))])
	}
}

// raceShare: where one goroutine encodes text after text, the race detector gets one in so
// many of them, as of patterns, and of the characters those below raceRunes. More of them
// show no more races and take eight times as long there; `make test` compares them all.
const raceShare, raceRunes = 8, 0x2000

// raceSome is n, and under the race detector its share.
func raceSome(n int) int {
	if raceBuild {
		return n / raceShare
	}
	return n
}

// raceSample is a list, and under the race detector one in raceShare of it.
func raceSample[T any](list []T) (out []T) {
	for i, x := range list {
		if !raceBuild || i%raceShare == 0 {
			out = append(out, x)
		}
	}
	return out
}

// contexts put a character where its class and its neighbours count.
var contexts = []string{"%", "a%b", " %a", "a%", "1%1", "%\n", "中%文", ".%.", "'%s", "e%\u0301"}

// every calls f with texts that hold every character of Unicode (see raceRunes) once in a
// context, 80 to a text.
func every(context string, f func(string)) {
	everyOf(context, func(rune) bool { return true }, f)
}

// everyOf does so for the characters that take wants.
func everyOf(context string, take func(rune) bool, f func(string)) {
	before, behind, _ := strings.Cut(context, "%")
	var b strings.Builder
	n := 0
	last := rune(utf8.MaxRune)
	if raceBuild {
		last = raceRunes - 1
	}
	for r := rune(0); r <= last; r++ {
		if !utf8.ValidRune(r) || !take(r) {
			continue
		}
		b.WriteString(before)
		b.WriteRune(r)
		b.WriteString(behind)
		b.WriteByte(" \n"[n%2])
		if n++; n%80 == 0 {
			f(b.String())
			b.Reset()
		}
	}
	if b.Len() > 0 {
		f(b.String())
	}
}
