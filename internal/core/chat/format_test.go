package chat

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestDetectFormat: the answers are those of vLLM 0.32.0's own code over Jinja2
// 3.1.6 (renderers/hf.py, _iter_nodes_assign_content_item), run on these templates.
func TestDetectFormat(t *testing.T) {
	for _, tc := range []struct {
		want   Format
		source string
	}{
		{StringFormat, `{% for m in messages %}{{ m.content }}{% endfor %}`},
		{PartsFormat, `{% for m in messages %}{% for c in m.content %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% for m in messages %}{% for c in m['content'] %}{% endfor %}{% endfor %}`},
		{StringFormat, `{% for m in messages %}{% for c in m.get('content') %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% for m in messages[1:] %}{% for c in m['content']|list %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% set ms = messages[1:] %}{% for m in ms %}{% for c in m.content[1:] %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% set a = messages %}{% set b = a|list %}{% for m in b %}{% for c in m.content %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% for m in messages %}{% set content = m.content %}{% for c in content %}{% endfor %}{% endfor %}`},
		{StringFormat, `{% for m in messages %}{% set x = m.content %}{% for c in x %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% macro r(content) %}{% for c in content %}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(m.content) }}{% endfor %}`},
		{StringFormat, `{% macro r(content) %}{% for c in content %}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(m) }}{% endfor %}`},
		{PartsFormat, `{% macro r(parts) %}{% for c in parts %}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(parts=m['content']) }}{% endfor %}`},
		{PartsFormat, `{% macro r(a, parts) %}{% for c in parts %}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(1, m.content|default('')) }}{% endfor %}`},
		{StringFormat, `{% macro r(a, parts) %}{% for c in a %}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(1, m.content) }}{% endfor %}`},
		{StringFormat, `{% macro r(content) %}{% for c in content %}{% endfor %}{% endmacro %}{% for m in messages %}{% set content = m.content %}{{ r(content) }}{% endfor %}`},
		{StringFormat, `{% for a, b in messages %}{% endfor %}{% for m in messages %}{% for c in m.content %}{% endfor %}{% endfor %}`},
		{StringFormat, `{% for m in messages %}{% for a, b in m.content %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% set a, b = messages, 1 %}{% for m in messages %}{% for c in m.content %}{% endfor %}{% endfor %}`},
		{StringFormat, `{% set ns.x = messages %}{% for m in messages %}{% for c in m.content %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% set ns.x = messages[0] %}{% for m in messages %}{% for c in m.content %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% set messages = messages[1:] %}{% for m in messages %}{% for c in m.content %}{% endfor %}{% endfor %}`},
		{StringFormat, `{% for c in messages[0].content %}{% endfor %}`},
		{StringFormat, `{% set m = messages[0] %}{% for c in m.content %}{% endfor %}`},
		{PartsFormat, `{% for c in content %}{% endfor %}`},
		{StringFormat, `{% for x in y %}{% for c in content|list %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% for m in messages if m.role == 'user' %}{% if m.content is not string %}{% for c in m.content if c.type == 'text' %}{% endfor %}{% endif %}{% endfor %}`},
		{StringFormat, `{# {% for m in messages %}{% for c in m.content %} #}{% raw %}{% for m in messages %}{% for c in m.content %}{% endfor %}{% endfor %}{% endraw %}`},
		{StringFormat, `{{ '{% for m in messages %}{% for c in m.content %}' }}`},
		{PartsFormat, `{% for m in messages %}{% generation %}{% for c in m.content %}{% endfor %}{% endgeneration %}{% endfor %}`},
		{PartsFormat, `{% for m in messages is defined %}{% for c in m.content is iterable %}{% endfor %}{% endfor %}`},
		{PartsFormat, `{% for m in messages %}{% set content %}{% for c in content %}{% endfor %}{% endset %}{% endfor %}`},
		{PartsFormat, `{% macro outer(content) %}{% macro inner(x) %}{% for c in content %}{% endfor %}{% endmacro %}{% endmacro %}{% for m in messages %}{{ outer(m.content) }}{% endfor %}`},
		{StringFormat, `{% macro outer(y) %}{% macro inner(content) %}{% for c in content %}{% endfor %}{% endmacro %}{{ inner(y) }}{% endmacro %}{% for m in messages %}{{ outer(m.content) }}{% endfor %}`},
		{PartsFormat, `{% for m in messages %}{% filter trim %}{% for c in m.content %}{% endfor %}{% endfilter %}{% endfor %}`},
		{PartsFormat, `{% for m in (messages) %}{% for c in (m.content) %}{% endfor %}{% endfor %}`},
		{StringFormat, `{% for m in messages + extra %}{% for c in m.content %}{% endfor %}{% endfor %}`},
	} {
		tree, err := syntax.Parse(tc.source)
		if err != nil {
			t.Errorf("%s: %v", tc.source, err)
			continue
		}
		if got := detectFormat(tree); got != tc.want {
			t.Errorf("%s: %v instead of %v", tc.source, got, tc.want)
		}
	}
}

// TestDetectFormatOfModels: the same for the chat templates of models.
func TestDetectFormatOfModels(t *testing.T) {
	for name, want := range map[string]Format{
		"Beam-1.0-501B-A23B":                 StringFormat,
		"DeepSeek-V4-Flash":                  StringFormat,
		"DeepSeek-V4.1-Flash":                StringFormat,
		"GLM-5.2":                            PartsFormat,
		"Kimi-K3":                            StringFormat,
		"LFM2.5-VL-1.6B-Q8_0":                PartsFormat,
		"Llama-3.2-1B-Instruct-GGUF":         StringFormat,
		"Ministral-3-14B-Instruct-2512-Q4_0": PartsFormat,
		"Mistral-Medium-3.5-128B-GGUF":       PartsFormat,
		"NVIDIA-Nemotron-3-Super":            StringFormat,
		"Qwen2-Audio-7B.Q8_0":                StringFormat,
		"Qwen3-8B-Q8_0":                      StringFormat,
		"Qwen3-VL-30B-A3B-Instruct-Q8_0":     PartsFormat,
		"Qwen3.5-35B-A3B-Q8_0":               PartsFormat,
		"Qwen3.6-35B-A3B-UD-Q4_K_M":          PartsFormat,
		"gemma-4-26B-A4B-it-UD-Q8_K_XL":      PartsFormat,
		"gpt-oss-20b-Q8_0":                   StringFormat,
		"laguna":                             StringFormat,
		"rnj-1-instruct-Q6_K":                StringFormat,
	} {
		r, err := New(Files{ChatTemplate: []byte(testdata.Template(t, name))}, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := r.ContentFormat(false); err != nil || got != want {
			t.Errorf("%s: %v, %v instead of %v", name, got, err, want)
		}
	}
}
