"""An online auction as punctuated streams, in the manner of NEXMark and XMark."""
