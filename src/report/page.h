// The fixed parts of the report's page: the files of page/, which the build embeds.
#pragma once

namespace tenon::report {

extern const char kPageHtml[], kPageCss[], kPageJs[];

}  // namespace tenon::report
