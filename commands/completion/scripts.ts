// The completion scripts, which call this program for the completions.

export const shells = ['bash', 'zsh', 'fish', 'powershell'] as const
export type Shell = (typeof shells)[number]

/** The scripts, by shell. */
export const scripts: Readonly<Record<Shell, string>> = {
  bash: `# Completion of controller for bash; in ~/.bashrc: source <(controller completion bash)
_controller() {
  local line word joined= before= words=()
  # Bash splits words at colons, and completes the part after the last one.
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $COMP_WORDBREAKS == *:* && \${#words[@]} -gt 0 && ($word == : || $joined == *:) ]]; then
      joined+=$word
      words[\${#words[@]}-1]=$joined
      before=\${joined%:*}:
    else
      joined=$word
      words+=("$word")
      before=
    fi
  done
  COMPREPLY=()
  while IFS= read -r line; do
    line=\${line%%$'\\t'*}
    COMPREPLY+=("$(printf '%q' "\${line#"$before"}")")
  done < <(controller complete -- "\${words[@]}" 2>/dev/null)
}
complete -o default -F _controller controller
`,
  zsh: `#compdef controller
# Completion of controller for zsh; in ~/.zshrc, after compinit: source <(controller completion zsh)
_controller() {
  local -a candidates
  local line
  for line in "\${(@f)$(controller complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( $#candidates )); then _describe controller candidates; else _files; fi
}
compdef _controller controller
`,
  fish: `# Completion of controller for fish; in ~/.config/fish/config.fish: controller completion fish | source
complete -c controller -a '(controller complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
  powershell: `# Completion of controller for PowerShell; in $PROFILE: controller completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName controller -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
  $fresh = if ($wordToComplete -eq '') { '--fresh' } else { '--last' }
  controller complete $fresh -- @words 2>$null | ForEach-Object {
    $name, $text = $_ -split "\`t", 2
    if (-not $text) { $text = $name }
    $typed = $name
    if ($name -notmatch '^[\\w./:+=-]+$') {
      $typed = "'" + [System.Management.Automation.Language.CodeGeneration]::EscapeSingleQuotedStringContent($name) + "'"
    }
    [System.Management.Automation.CompletionResult]::new($typed, $name, 'ParameterValue', $text)
  }
}
`,
}
