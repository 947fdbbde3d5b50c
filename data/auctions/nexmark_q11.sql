-- The sessions of each bidder, and how many bids each has: a session ends where there is none for more than ten seconds.
-- NEXMark, Query 11, as nexmark/nexmark puts it for Flink. Here a session begins with a bid that has none of its bidder
-- in the ten seconds before it, and a bid belongs to the last session that has begun.
-- A bidder who bids no more (bid.bidder) closes their sessions.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '32m');

WITH bids AS (SELECT bidder, dateTime, COUNT(*) AS bids FROM bid GROUP BY bidder, dateTime),
first AS (
  SELECT L.bidder, L.dateTime FROM bids L LEFT ANTI JOIN bids E
  ON L.bidder = E.bidder AND E.dateTime < L.dateTime AND L.dateTime <= E.dateTime + INTERVAL 10 SECONDS
),
in_session AS (
  SELECT B.bidder, B.dateTime, B.bids, MAX(F.dateTime) AS starttime
  FROM bids B JOIN first F ON B.bidder = F.bidder AND F.dateTime <= B.dateTime
  GROUP BY B.bidder, B.dateTime, B.bids
)
SELECT bidder, SUM(bids) AS bid_count, starttime, MAX(dateTime) + INTERVAL 10 SECONDS AS endtime
FROM in_session
GROUP BY bidder, starttime;
