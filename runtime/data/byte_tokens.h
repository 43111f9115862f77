#pragma once

#include <cstdint>

namespace sherd {

/// Texts are their bytes, tokens 0 to 255. These begin them and fill them up, where a model reads
/// whole texts.
inline constexpr std::int32_t kPadding = 256;
inline constexpr std::int32_t kTextStart = 257;  ///< BERT's [CLS]
/// What a vocabulary must hold for that.
inline constexpr std::int64_t kTextVocabulary = 258;

}  // namespace sherd
