package serve

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxChunk is the most body bytes one streamed answer carries: some Envoy builds
// before 1.40 reject messages above 64 KiB.
const maxChunk = 62_000

// Keys eppctl adds under envoy.lb, for the access log: which pick it was, and
// why no prefix was matched.
const (
	pickIDKey = "x-eppctl-pick-id"
	reasonKey = "x-eppctl-reason"
)

// answer is what a pick makes of a request's headers and metadata.
type answer struct {
	Destination string // "ip:port", or a comma list when fallbacks are on
	PickID      string
	Reason      string
	NewID       string // request id to add, "" = the client sent one
	Rank        string // data-parallel rank to ask for, "" = leave it to the engine
	Scores      map[string]float64
	Strip       []string
	Rewrite     *rewrite // of the model in the body, nil = it stays as it is
	Length      string   // content-length of the rewritten body, "" = leave it alone
}

// mutation holds only what changes: everything else, duplicates included,
// reaches the engine as the client sent it.
func (a *answer) mutation() *extproc.HeaderMutation {
	m := &extproc.HeaderMutation{
		SetHeaders:    []*corev3.HeaderValueOption{setHeader(destinationKey, a.Destination)},
		RemoveHeaders: a.Strip,
	}
	if a.NewID != "" {
		m.SetHeaders = append(m.SetHeaders, setHeader(requestIDHeader, a.NewID))
	}
	if a.Rank != "" {
		m.SetHeaders = append(m.SetHeaders, setHeader(rankHeader, a.Rank))
	}
	if a.Length != "" {
		m.SetHeaders = append(m.SetHeaders, setHeader(lengthHeader, a.Length))
	}
	return m
}

// body is what the engine gets of a body, or of its first part.
func (a *answer) body(came []byte) []byte {
	if a.Rewrite == nil {
		return came
	}
	return a.Rewrite.apply(came)
}

// metadata is the dynamic metadata: the outer key is the namespace.
func (a *answer) metadata() *structpb.Struct {
	lb := map[string]*structpb.Value{
		destinationKey: structpb.NewStringValue(a.Destination),
		pickIDKey:      structpb.NewStringValue(a.PickID),
	}
	if a.Reason != "" {
		lb[reasonKey] = structpb.NewStringValue(a.Reason)
	}
	if a.Scores != nil {
		scores := make(map[string]*structpb.Value, len(a.Scores))
		for k, v := range a.Scores {
			scores[k] = structpb.NewNumberValue(v)
		}
		lb[scoresKey] = structpb.NewStructValue(&structpb.Struct{Fields: scores})
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		lbNamespace: structpb.NewStructValue(&structpb.Struct{Fields: lb}),
	}}
}

// setHeader overwrites or adds. Only raw_value is set: Envoy rejects a header
// with both, and reads an unset append action differently from other proxies.
func setHeader(key, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: key, RawValue: []byte(value)},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// common wraps a picked answer, or nothing (nil), as both header and body
// responses carry it.
func common(a *answer) (*extproc.CommonResponse, *structpb.Struct) {
	if a == nil {
		return nil, nil
	}
	return &extproc.CommonResponse{HeaderMutation: a.mutation()}, a.metadata()
}

func requestHeadersAnswer(a *answer) *extproc.ProcessingResponse {
	c, md := common(a)
	return &extproc.ProcessingResponse{
		Response:        &extproc.ProcessingResponse_RequestHeaders{RequestHeaders: &extproc.HeadersResponse{Response: c}},
		DynamicMetadata: md,
	}
}

func requestBodyAnswer(a *answer) *extproc.ProcessingResponse {
	c, md := common(a)
	return &extproc.ProcessingResponse{
		Response:        &extproc.ProcessingResponse_RequestBody{RequestBody: &extproc.BodyResponse{Response: c}},
		DynamicMetadata: md,
	}
}

// bufferedBodyAnswer is the pick behind a buffered body. The body is sent back
// only if it changes.
func bufferedBodyAnswer(a *answer, body []byte) *extproc.ProcessingResponse {
	r := requestBodyAnswer(a)
	if a.Rewrite != nil {
		r.GetRequestBody().Response.BodyMutation = &extproc.BodyMutation{
			Mutation: &extproc.BodyMutation_Body{Body: a.Rewrite.apply(body)},
		}
	}
	return r
}

// requestTrailersAnswer cannot change headers; the metadata still routes.
func requestTrailersAnswer(a *answer) *extproc.ProcessingResponse {
	_, md := common(a)
	return &extproc.ProcessingResponse{
		Response:        &extproc.ProcessingResponse_RequestTrailers{RequestTrailers: &extproc.TrailersResponse{}},
		DynamicMetadata: md,
	}
}

// responseHeadersAnswer takes the length off a response whose body will change:
// by how much is not known yet.
func responseHeadersAnswer(changes bool) *extproc.ProcessingResponse {
	h := &extproc.HeadersResponse{}
	if changes {
		h.Response = &extproc.CommonResponse{HeaderMutation: &extproc.HeaderMutation{RemoveHeaders: []string{lengthHeader}}}
	}
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseHeaders{ResponseHeaders: h}}
}

func responseBodyAnswer() *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{
		Response: &extproc.ProcessingResponse_ResponseBody{ResponseBody: &extproc.BodyResponse{}},
	}
}

func responseTrailersAnswer() *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{
		Response: &extproc.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extproc.TrailersResponse{}},
	}
}

// streamed carries body bytes back in full duplex.
func streamed(body []byte, eos bool) *extproc.BodyResponse {
	return &extproc.BodyResponse{Response: &extproc.CommonResponse{BodyMutation: &extproc.BodyMutation{
		Mutation: &extproc.BodyMutation_StreamedResponse{
			StreamedResponse: &extproc.StreamedBodyResponse{Body: body, EndOfStream: eos},
		},
	}}}
}

func streamedRequest(body []byte, eos bool) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{RequestBody: streamed(body, eos)}}
}

func streamedResponse(body []byte, eos bool) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseBody{ResponseBody: streamed(body, eos)}}
}

// chunks cuts body into pieces of at most maxChunk bytes and yields them in
// order; eos marks the last one only. An empty body is one empty piece: its end
// of stream has to travel too.
func chunks(body []byte, eos bool, yield func(piece []byte, eos bool)) {
	for len(body) > maxChunk {
		yield(body[:maxChunk], false)
		body = body[maxChunk:]
	}
	yield(body, eos)
}
