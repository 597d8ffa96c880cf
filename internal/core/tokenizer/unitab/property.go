package unitab

import (
	"slices"
	"strings"
)

// Property returns the characters of a general category ("Lu", "L", "Letter"), of a
// script ("Han"), or of one of Alphabetic, Uppercase, Lowercase, White_Space. As in
// patterns, case, blanks, hyphens and underscores in its name do not count. It reports
// false for a name that is not known.
func Property(name string) ([]Range, bool) {
	name = loose(name)
	if short, ok := categoryNames[name]; ok {
		name = loose(short)
	}
	switch name {
	case "whitespace", "space":
		return space, true
	case "alphabetic", "alpha":
		return alphabetic, true
	case "uppercase", "upper":
		return uppercase, true
	case "lowercase", "lower":
		return lowercase, true
	case "lc":
		return slices.Concat(categories["Lu"], categories["Ll"], categories["Lt"]), true
	}
	if r, ok := scripts[name]; ok {
		return r, true
	}
	var out []Range
	for _, minor := range minors {
		switch low := strings.ToLower(minor); name {
		case low:
			return categories[minor], true
		case low[:1]:
			out = append(out, categories[minor]...)
		}
	}
	return out, out != nil
}

func loose(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "", "_", "").Replace(name))
}

// minors are the general categories, in the order of the standard.
var minors = []string{
	"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
	"Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn",
}
