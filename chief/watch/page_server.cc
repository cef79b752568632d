#include "chief/watch/page_server.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "chief/watch/page/page_files.h"
#include "common/metrics/metrics_text.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

HttpResponse FileAnswer(const PageFile& file, const HttpRequest& request) {
  HttpResponse response;
  const std::string tag = absl::StrCat("\"", file.fingerprint, "\"");
  response.headers = {{"ETag", tag}, {"Cache-Control", "no-cache"}, {"Content-Security-Policy", kPolicy}};
  response.content_type = std::string(file.content_type);
  if (request.if_none_match == tag) {
    response.status = 304;
  } else {
    response.body = std::string(file.content);
  }
  return response;
}

HttpResponse NotHere(const std::string& path) {
  HttpResponse response;
  response.status = 404;
  response.body = absl::StrCat("there is no ", path, " here; the page is /\n");
  return response;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(Options options, PageApi* api) {
  const auto access = std::make_shared<const PageAccess>(std::move(options.check_credential));
  HttpServer::Options server;
  server.listen = options.listen;
  server.quick = [access, health = options.health](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (auto answer = AnswerHealth(request, health)) return answer;
    if (auto refusal = access->Refuse(request)) return refusal;
    if (request.path == kMetricsPath || absl::StartsWith(request.path, "/api/")) return std::nullopt;
    const PageFile* file = FindPageFile(absl::StripPrefix(request.path, "/"));
    return file == nullptr ? NotHere(request.path) : FileAnswer(*file, request);
  };
  server.slow = [api, metrics = options.metrics](const HttpRequest& request) {
    HttpResponse response;
    if (request.path == kMetricsPath) {
      const absl::StatusOr<std::string> text = metrics();
      response.status = text.ok() ? 200 : 503;
      if (text.ok()) response.content_type = kMetricsContentType;
      response.body = text.ok() ? *text : absl::StrCat(text.status().message(), "\n");
    } else {
      response = api->Answer(absl::StripPrefix(request.path, "/api/"), request);
    }
    response.headers.emplace_back("Cache-Control", "no-store");
    return response;
  };
  std::unique_ptr<PageServer> page(new PageServer);
  LS_ASSIGN_OR_RETURN(page->server_, HttpServer::Start(std::move(server)));
  return page;
}

std::string PageServer::url() const { return absl::StrCat("http://", server_->address(), "/"); }

}  // namespace lockstep::chief
