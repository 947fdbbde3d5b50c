-- The sessions of each bidder, and how many bids each has: a session ends where there is none for more than ten seconds.
-- NEXMark, Query 11, as nexmark/nexmark puts it for Flink.
-- A session is over when no bid of its bidder can follow within ten seconds, by heartbeats (bid.dateTime) or because
-- the bidder bids no more (bid.bidder).
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT bidder, COUNT(*) AS bid_count, session_window.start AS starttime, session_window.end AS endtime
FROM bid
GROUP BY bidder, session_window(dateTime, '10 seconds');
