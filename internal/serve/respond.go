package serve

import (
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxChunk is the most body bytes one streamed answer carries: some Envoy builds
// before 1.40 reject messages above 64 KiB.
const maxChunk = 62_000

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
