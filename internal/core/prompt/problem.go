package prompt

import "fmt"

// Problem is a refusal in the terms of the OpenAI error object. Message never
// quotes the body.
type Problem struct {
	Status  int    // HTTP
	Type    string // "invalid_request_error"
	Code    string // "invalid_json", "missing_model"
	Param   string // the field at fault, "" = null
	Message string // one sentence
}

func (p *Problem) Error() string { return p.Message }

func invalidJSON(offset int64) *Problem {
	return &Problem{
		Status: 400, Type: "invalid_request_error", Code: "invalid_json",
		Message: fmt.Sprintf("The request body is not valid JSON (near byte %d).", offset),
	}
}

func notObject() *Problem {
	return &Problem{
		Status: 400, Type: "invalid_request_error", Code: "invalid_json",
		Message: "The request body is not a JSON object.",
	}
}

func missingModel() *Problem {
	return &Problem{
		Status: 400, Type: "invalid_request_error", Code: "missing_model", Param: "model",
		Message: "The request names no model and no default model is configured.",
	}
}
