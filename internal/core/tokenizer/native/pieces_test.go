package native_test

import (
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
)

// TestPieces: what the ids of a text stand for is the text. Those of SentencePiece
// are written with marks for blanks and with bytes in hexadecimal digits, and have a
// blank in front.
func TestPieces(t *testing.T) {
	byteToken := regexp.MustCompile(`<0x([0-9A-F]{2})>`)
	text := "Überraschung: l'été  à Málaga\n\n don't 12345 你好 👍🏽\x00\u200b\t \ue000"
	for _, name := range names() {
		tok := load(t, name)
		ids, err := tok.Encode(text, false)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, id := range ids {
			piece, ok := tok.Piece(id)
			if !ok {
				t.Errorf("%s: id %d stands for nothing", name, id)
			}
			b.Write(piece)
		}
		got := b.String()
		if got != text {
			got = strings.ReplaceAll(got, "▁", " ")
			got = byteToken.ReplaceAllStringFunc(got, func(s string) string {
				b, _ := hex.DecodeString(s[3:5])
				return string(b)
			})
			got = strings.TrimPrefix(got, " ")
		}
		if got != text {
			t.Errorf("%s: %q", name, b.String())
		}
		special, err := tok.Encode("", true)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range special {
			if piece, ok := tok.Piece(id); !ok && !strings.HasPrefix(name, "tekken") { // which lists none
				t.Errorf("%s: the special token %d is %q", name, id, piece)
			}
		}
		if piece, ok := tok.Piece(1 << 31); ok {
			t.Errorf("%s: %q stands for no id", name, piece)
		}
	}
}
